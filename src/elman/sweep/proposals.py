"""Settings that Optuna proposes from the figures of those before, and runs that it prunes (ask and tell)."""

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from elman.errors import UserError
from elman.jobs.launching import Tell
from elman.reproduce.planned import UNTRAINED, PlannedRun
from elman.sweep.outcome import validation_nll
from elman.sweep.question import TRIALS, Sweep
from elman.sweep.space import Axis, Range, Setting
from elman.sweep.tried import Tried

STUDY = "study.journal"
"""In the folder of a sweep: Optuna's record, JSON by line."""

UNPRUNED, FIRST_CHECKS = 4, 1
"""Trials that run to their end before any is pruned, and validations of each run that are not judged."""


class Unlocked:
    """The lock of a journal with a single writer: one process owns the folder of a sweep."""

    def acquire(self) -> bool:
        """Nothing."""
        return True

    def release(self) -> None:
        """Nothing."""


class Proposals:
    """Trials of Optuna's TPE sampler, each a setting with all seeds.

    A trial begins with its first seed, by whose validations it is pruned (`MedianPruner`); the others follow when that
    is trained. Its value is the mean over seeds. What a sampler draws depends on the seed of the sweep, the number of
    the trial, and the trials that have ended by then.
    """

    def __init__(self, sweep: Sweep, tell: Tell) -> None:
        """Open the study of the folder; raises UserError where optuna is missing or the study is damaged."""
        try:
            import optuna
            from optuna.storages import journal
        except ImportError:
            raise UserError("--search optuna needs the package optuna: pip install 'elman[optuna]'") from None

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.sweep, self.tell, self.optuna = sweep, tell, optuna
        path, lock = sweep.out / STUDY, cast(Any, Unlocked())
        _cut_half_line(path)
        try:
            storage = optuna.storages.JournalStorage(journal.JournalFileBackend(str(path), lock))
            pruner = optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED, n_warmup_steps=FIRST_CHECKS)
            self.study = optuna.create_study(
                storage=storage, study_name="sweep", pruner=pruner, sampler=self._sampler(0), load_if_exists=True
            )
        except (ValueError, KeyError, OSError) as error:
            raise UserError(f"{path}: not a study of Optuna ({error}); restore it, or choose another --out") from None
        self.tried: list[Tried] = []
        self._trials: list[Any] = []
        self._open = set[int]()
        self._handed, self._sizes = set[tuple[int, Path]](), dict[Path, int]()
        for frozen in self.study.get_trials(deepcopy=False):
            self._take(optuna.trial.Trial(self.study, frozen._trial_id))

    def more(self, room: int) -> Sequence[PlannedRun]:
        """The seeds after the first of trials whose first is trained; else the first seed of a new trial."""
        for number, one in enumerate(self.tried):
            wanted = one.runs[:1] if one.runs[0].status in UNTRAINED else one.runs
            new = [run for run in wanted if (number, run.folder) not in self._handed]
            if new and number in self._open:
                self._handed |= {(number, run.folder) for run in new}
                return new
        if not room or len(self.tried) >= (self.sweep.question.trials or TRIALS):
            return ()
        self.study.sampler = self._sampler(len(self.tried))
        axes = self.sweep.question.space.axes
        self._take(self.study.ask({key: self._distribution(axis) for key, axis in axes.items()}))
        return self.more(room)

    def ended(self, run: PlannedRun, failure: str | None) -> None:
        """Record a trial that has ended: by its value, as pruned, or as failed."""
        states = self.optuna.trial.TrialState
        for number in sorted(self._open):
            one = self.tried[number]
            if run.folder not in one.folders:
                continue
            if failure is not None:
                one.fail(run, failure)
                self.study.tell(number, state=states.FAIL)
            elif one.pruned:
                self.study.tell(number, state=states.PRUNED)
            elif all(each.status not in UNTRAINED for each in one.runs):
                self.study.tell(number, statistics.fmean(validation_nll(each) for each in one.runs))
            else:
                continue
            self._open.remove(number)

    def unwanted(self, running: Sequence[PlannedRun]) -> Iterable[PlannedRun]:
        """First seeds that are worse than the median of the trials before at the same validation."""
        folders = {run.folder for run in running}
        for number in self._open:
            one = self.tried[number]
            if one.runs[0].folder in folders and not one.pruned:
                one.pruned = self._is_pruned(number, one.runs[0])
        return [one.runs[0] for one in self.tried if one.pruned]

    def later(self) -> int:
        """The seeds of trials that have not ended, and all of those to come."""
        follow = [(number, run) for number in self._open for run in self.tried[number].runs]
        known = sum((number, run.folder) not in self._handed and run.status in UNTRAINED for number, run in follow)
        to_come = max(0, (self.sweep.question.trials or TRIALS) - len(self.tried))
        return known + to_come * len(self.sweep.question.seeds)

    def _is_pruned(self, number: int, run: PlannedRun) -> bool:
        """Report the validations that were written since the last look; whether the trial should end."""
        path = run.folder / "metrics.jsonl"
        size = path.stat().st_size if path.is_file() else 0
        if size == self._sizes.get(path, 0):
            return False
        self._sizes[path] = size
        checks = () if (found := run.metrics) is None else found.valid
        trial, known = self._trials[number], self.study.get_trials(deepcopy=False)[number].intermediate_values
        for place, check in enumerate(checks):
            if place in known:
                continue
            trial.report(check.nll, place)
            if trial.should_prune():
                self.tell(f"{run.name}: pruned after validation {place + 1}, {check.nll:.4f} nats")
                return True
        return False

    def _take(self, trial: Any) -> None:
        setting = self._setting(trial.params)
        frozen = self.study.get_trials(deepcopy=False)[trial.number]
        pruned = frozen.state == self.optuna.trial.TrialState.PRUNED
        self._trials.append(trial)
        if not frozen.state.is_finished():
            self._open.add(trial.number)
        one = Tried(setting, self.sweep.runs(setting), pruned=pruned)
        if frozen.state == self.optuna.trial.TrialState.FAIL:
            one.failures = dict.fromkeys(
                (run.recipe.seed for run in one.runs if run.status in UNTRAINED), "failed before"
            )
        self.tried.append(one)

    def _setting(self, parameters: dict[str, Any]) -> Setting:
        axes = self.sweep.question.space.axes
        return Setting(
            tuple(
                (key, axis.text(parameters[key]) if isinstance(axis, Range) else parameters[key])
                for key, axis in axes.items()
            )
        )

    def _distribution(self, axis: Axis) -> Any:
        distributions = self.optuna.distributions
        if not isinstance(axis, Range):
            return distributions.CategoricalDistribution(axis.texts)
        if axis.scale == "int":
            last = int(axis.low) + (int(axis.high) - int(axis.low)) // axis.step * axis.step
            return distributions.IntDistribution(int(axis.low), last, step=axis.step)
        return distributions.FloatDistribution(axis.low, axis.high, log=axis.scale == "log")

    def _sampler(self, number: int) -> Any:
        seed = np.random.SeedSequence([self.sweep.question.sampler_seed, number]).generate_state(1)[0]
        return self.optuna.samplers.TPESampler(seed=int(seed))


def _cut_half_line(path: Path) -> None:
    """Remove the end of a line that a killed process was writing."""
    if path.is_file() and (content := path.read_bytes()) and not content.endswith(b"\n"):
        with path.open("rb+") as file:
            file.truncate(content.rfind(b"\n") + 1)
