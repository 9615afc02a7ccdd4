"""Settings that Optuna proposes from the figures of those before, and runs that it prunes (ask and tell)."""

import contextlib
import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from elman.errors import UserError
from elman.jobs.launching import Tell
from elman.study.runner import Programme
from elman.study.runs import PlannedRun
from elman.study.sweep.found import Tried
from elman.study.sweep.question import TRIALS, Sweep
from elman.study.sweep.space import Axis, Range, Setting

STUDY = "study.journal"  # in the folder of a sweep: Optuna's record, JSON by line
FAILURES = "failures"  # what Optuna's record holds of a failed trial: the failure by seed

UNPRUNED, FIRST_CHECKS = 4, 1
"""Trials that run to their end before any is pruned, and validations of each run that are not judged."""


UNLOCKED: Any = SimpleNamespace(acquire=lambda: True, release=lambda: None)
"""The lock of a journal with a single writer: one process owns the folder of a sweep."""


class Proposals(Programme[PlannedRun]):
    """Trials of Optuna's TPE sampler, each a setting with all seeds.

    A trial begins with its first seed, by whose validations it is pruned (`MedianPruner`); the others follow when that
    is trained. Its value is the mean over seeds. Trials of the same setting have the same runs, which are trained once;
    where they were pruned or failed, a later trial ends so at once. What a sampler draws depends on the seed of the
    sweep, the number of the trial, and the trials that have ended by then.
    """

    lenient = True

    def __init__(self, sweep: Sweep, tell: Tell) -> None:
        """Open the study of the folder; raises UserError where optuna is missing or the study is damaged."""
        optuna, path = _optuna(), sweep.out / STUDY
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.sweep, self.tell, self.optuna = sweep, tell, optuna
        _cut_half_line(path)
        with _refused_if_damaged(path):
            pruner = optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED, n_warmup_steps=FIRST_CHECKS)
            self.study = optuna.create_study(
                storage=_storage(path), study_name="sweep", pruner=pruner, sampler=self._sampler(0), load_if_exists=True
            )
        self.tried: list[Tried] = []
        self._trials: list[Any] = []
        self._open = set[int]()
        self._handed, self._sizes = set[tuple[int, Path]](), dict[Path, int]()
        for frozen in self.study.get_trials(deepcopy=False):
            self._take(optuna.trial.Trial(self.study, frozen._trial_id))

    def more(self, room: int) -> Sequence[PlannedRun]:
        """The seeds after the first of trials whose first is trained; else the first seed of a new trial."""
        while not (new := self._following()):
            if not room or len(self.tried) >= (self.sweep.question.trials or TRIALS):
                return ()
            self.study.sampler = self._sampler(len(self.tried))
            axes = self.sweep.question.space.axes
            self._take(self.study.ask({key: self._distribution(axis) for key, axis in axes.items()}))
        return new

    def _following(self) -> list[PlannedRun]:
        for number in sorted(self._open):
            runs = self.tried[number].runs
            wanted = runs[:1] if runs[0].is_open else runs
            if new := [run for run in wanted if (number, run.folder) not in self._handed]:
                self._handed |= {(number, run.folder) for run in new}
                return new
        return []

    def ended(self, run: PlannedRun, failure: str | None) -> None:
        for number in sorted(self._open):
            one = self.tried[number]
            if run.folder not in one.folders:
                continue
            if failure is not None:
                one.failures[run.recipe.seed] = failure
            if failure is not None or one.pruned or all(not each.is_open for each in one.runs):
                self._end(number)

    def _end(self, number: int) -> None:
        one, states = self.tried[number], self.optuna.trial.TrialState
        if one.failures:
            self._trials[number].set_user_attr(FAILURES, {str(seed): text for seed, text in one.failures.items()})
            self.study.tell(number, state=states.FAIL)
        elif one.pruned:
            self.study.tell(number, state=states.PRUNED)
        else:
            self.study.tell(number, statistics.fmean(each.valid_nll for each in one.runs))
        self._open.remove(number)

    def unwanted(self, running: Sequence[PlannedRun]) -> Iterable[PlannedRun]:
        """First seeds that are worse than the median of the trials before at the same validation."""
        folders = {run.folder for run in running}
        for number in self._open:
            one = self.tried[number]
            if one.runs[0].folder in folders and not one.pruned and self._is_pruned(number, one.runs[0]):
                for other in self._open:
                    self.tried[other].pruned |= self.tried[other].folders == one.folders
        return [one.runs[0] for one in self.tried if one.pruned]

    def later(self) -> int:
        """The seeds of trials that have not ended, and all of those to come."""
        follow = [(number, run) for number in self._open for run in self.tried[number].runs]
        known = sum((number, run.folder) not in self._handed and run.is_open for number, run in follow)
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
        """Note a trial, which ends at once where an earlier one of the same runs was pruned or failed."""
        states, frozen = self.optuna.trial.TrialState, self.study.get_trials(deepcopy=False)[trial.number]
        setting = Setting(
            tuple(
                (key, axis.text(trial.params[key]) if isinstance(axis, Range) else trial.params[key])
                for key, axis in self.sweep.question.space.axes.items()
            )
        )
        one = Tried(setting, self.sweep.runs(setting), pruned=frozen.state == states.PRUNED)
        if frozen.state == states.FAIL:  # which seed failed and is untrained; by older versions the first of these
            untrained = [run.recipe.seed for run in one.runs if run.is_open]
            known = frozen.user_attrs.get(FAILURES, dict.fromkeys(untrained[:1], "failed before"))
            one.failures = {int(seed): failure for seed, failure in known.items() if int(seed) in untrained}
        same = [each for each in self.tried if each.folders == one.folders and (each.pruned or each.failures)]
        self._trials.append(trial)
        self.tried.append(one)
        if frozen.state.is_finished():
            return
        self._open.add(trial.number)
        if same:
            one.pruned, one.failures = same[0].pruned, dict(same[0].failures)
            self._end(trial.number)

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


def ended_trials(out: Path) -> int:
    """How many trials of the study in a folder have ended; nothing is written. Raises UserError as `Proposals`."""
    path = out / STUDY
    if not path.is_file():
        return 0
    _optuna()
    with _refused_if_damaged(path):
        storage = _storage(path)
        trials = [trial for study in storage.get_all_studies() for trial in storage.get_all_trials(study._study_id)]
    return sum(trial.state.is_finished() for trial in trials)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise UserError("--search optuna needs the package optuna: pip install 'elman[optuna]'") from None
    return optuna


def _storage(path: Path) -> Any:
    from optuna.storages import JournalStorage, journal

    return JournalStorage(journal.JournalFileBackend(str(path), UNLOCKED))


@contextlib.contextmanager
def _refused_if_damaged(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, OSError) as error:
        raise UserError(f"{path}: not a study of Optuna ({error}); restore it, or choose another --out") from None


def _cut_half_line(path: Path) -> None:
    if path.is_file() and (content := path.read_bytes()) and not content.endswith(b"\n"):
        with path.open("rb+") as file:
            file.truncate(content.rfind(b"\n") + 1)
