"""One training of a study: how far it is, by the files of its folder, and how it is trained in a process of its own."""

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import msgspec
import torch

from elman.config.recipe import Recipe
from elman.errors import Diverged, UserError
from elman.evaluation.result import RESULTS, Result, static_results
from elman.files import write_atomic
from elman.formats import parse_json, read_json
from elman.jobs.launching import Launch, Tell
from elman.jobs.locks import is_taken
from elman.learning.progress import phases_of
from elman.learning.trainer import StopReason
from elman.network.device import choose_device, use_large_pages
from elman.report.metrics import Metrics, read_metrics
from elman.report.page import write_report
from elman.study.runner import Count, Programme, Work, carry_out
from elman.tasks.experiment import Experiment
from elman.tasks.tracking.trackers import tracked


@dataclass(frozen=True)
class Machine:
    """How runs are trained: how many at once and where, the device and number of threads of each, and the trackers.

    Without trackers (None) those that an interrupted run remembers are left out too.
    """

    launch: Launch = field(default_factory=Launch)
    device: str = "auto"
    threads: int | None = None
    track: tuple[str, ...] | None = ()

    def prepare(self) -> None:
        use_large_pages()
        if self.threads is not None:
            torch.set_num_threads(self.threads)


class Status(Enum):
    MISSING = "not trained"
    INTERRUPTED = "interrupted"
    DIVERGED = "diverged"
    DONE = "done"


TRIED = "tried.json"
"""What a trial of a grid leaves in the place of results: the lowest validation loss of its training."""


class _Tried(msgspec.Struct):
    valid: float | None


def results_by_split(folder: Path) -> dict[str, Result]:
    """The results of a run's model as it is; a loss that is null is infinite."""
    return {one.split: one for one in static_results(folder)}


@dataclass(frozen=True)
class PlannedRun:
    """One training: the recipe with its seed and data, and the label of the first arm that needs it, for messages.

    The folder is `runs/LABEL-DIGEST`; runs of equal digest are the same run, whatever the label. A `trial` only chooses
    settings: it is judged by its validations while it trains, and not evaluated after them.
    """

    label: str
    recipe: Recipe
    folder: Path
    trial: bool = False

    @property
    def name(self) -> str:
        return f"{self.label}, seed {self.recipe.seed}"

    @property
    def status(self) -> Status:
        if (self.folder / RESULTS).is_file() or (self.trial and (self.folder / TRIED).is_file()):
            return Status.DONE
        if (self.folder / "diverged.json").is_file():
            return Status.DIVERGED
        return Status.INTERRUPTED if (self.folder / "recipe.toml").is_file() else Status.MISSING

    @property
    def is_open(self) -> bool:
        return self.status in (Status.MISSING, Status.INTERRUPTED)

    @property
    def valid_nll(self) -> float:
        """Nats per token of the best model on the validation split; infinite where the training diverged.

        Nothing else of the results is read: settings are chosen without the test split. A trial that was trained as a
        run has results too. Raises where the run is not done.
        """
        if self.status is Status.DIVERGED:
            return math.inf
        if self.trial and (self.folder / TRIED).is_file():
            found: _Tried = read_json(self.folder / TRIED, _Tried)
            return math.inf if found.valid is None else found.valid
        return results_by_split(self.folder)["valid"].nll

    @property
    def metrics(self) -> Metrics | None:
        path = self.folder / "metrics.jsonl"
        return read_metrics(path) if path.is_file() else None

    @property
    def minutes(self) -> float | None:
        return None if (found := self.metrics) is None or not math.isfinite(found.seconds) else found.seconds / 60

    @property
    def progress(self) -> str:
        reporting, phases = self.recipe.data.reporting, [phase.epochs for phase in phases_of(self.recipe.training)]
        try:
            record = parse_json((self.folder / "metrics.jsonl").read_bytes().splitlines()[-1])
            place = f"epoch {sum(phases[: record['phase']]) + record['epoch']:.2f} of {sum(phases)}"
            nll = record.get("nll", record.get("loss"))
        except (OSError, ValueError, IndexError, KeyError, TypeError, AttributeError):
            return f"{self.name} begins"
        loss = ""
        if isinstance(nll, float):
            loss = f", ppl {reporting.of(nll):.1f}" if reporting.in_perplexity else f", nll {nll:.4f}"
        return f"{self.name} at {place}{loss}"

    measuring = "measuring"

    def work(self, machine: Machine) -> Work["PlannedRun"]:
        return Work(
            self, self.name, self.folder, self.folder.name, (train, self, machine),
            is_open=lambda: self.is_open, is_taken=lambda: is_taken(self.folder),
            begins=f"training into {self.folder}", ends=lambda seconds: f"{self.status.value} after {seconds:.0f} s",
        )  # fmt: skip


def train(run: PlannedRun, machine: Machine) -> None:
    """Train, evaluate and report one run in this process; an interrupted run is resumed, a trial only trained.

    Returns at once where the run is trained, or another process is training it. Raises UserError where it cannot be
    trained.
    """
    machine.prepare()
    if not run.is_open:
        return
    try:
        _train(run, machine)
    except UserError:
        if not is_taken(run.folder) and run.is_open:
            raise


def _train(run: PlannedRun, machine: Machine) -> None:
    resume, device = run.status is Status.INTERRUPTED, choose_device(machine.device)
    experiment = Experiment(run.recipe, run.folder, device=device, resume=resume, extras=machine.track or ())
    with experiment.lock:
        try:
            with tracked(experiment, run.label, off=machine.track is None) as trackers:
                if experiment.train(trackers) is not StopReason.FINISHED:
                    return
                if run.trial:
                    write_atomic(run.folder / TRIED, json.dumps({"valid": experiment.trainer.progress.best}) + "\n")
                else:
                    experiment.finish()
                    experiment.attach(write_report([run.folder]))
        except Diverged as error:
            write_atomic(run.folder / "diverged.json", json.dumps({"reason": str(error)}) + "\n")


Watch = Callable[[Count[PlannedRun]], None]


def reporting(tell: Tell) -> Watch:
    """Report how far the training of many runs is, every half minute."""
    last = time.monotonic()

    def watch(count: Count[PlannedRun]) -> None:
        nonlocal last
        if time.monotonic() - last > 30:
            last = time.monotonic()
            failed = f", {count.failed} failed" if count.failed else ""
            left = "" if count.seconds_left is None else f", about {count.seconds_left / 60:.1f} minutes left"
            running = "; ".join(run.progress for run in count.running)
            tell(f"{count.ended} of {count.total} runs done{failed}{left}; {running}")

    return watch


def train_all(runs: Sequence[PlannedRun], machine: Machine, tell: Tell) -> None:
    """Train the runs that are not trained yet, as `runner.carry_out`; raises UserError where one of them failed."""
    carry_out(Programme(runs), lambda run: run.work(machine), machine.launch, tell, reporting(tell))
