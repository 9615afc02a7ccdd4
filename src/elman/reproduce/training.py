"""Training of planned runs, several at once; what remains of each is its run folder."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import torch

from elman.errors import Diverged, UserError
from elman.files import write_atomic
from elman.formats import parse_json
from elman.jobs import listening
from elman.jobs.launching import Crew, Launch, Tell
from elman.jobs.locks import is_taken
from elman.learning.progress import phases_of
from elman.learning.trainer import StopReason
from elman.network.device import choose_device, use_large_pages
from elman.report.page import write_report
from elman.reproduce.planned import TRIED, UNTRAINED, PlannedRun, Status
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


class Stopped(Exception):  # noqa: N818
    """A signal asked to stop; every run is saved."""


class Programme(Protocol):
    """Which runs are trained: it may depend on how others end."""

    def more(self, room: int, /) -> Sequence[PlannedRun]:
        """Runs to train beside those so far; asked for again and again, while `room` more may begin at once."""

    def ended(self, run: PlannedRun, failure: str | None, /) -> None:
        """A run is trained, diverged, failed for the last time, or was not needed any more."""

    def unwanted(self, running: Sequence[PlannedRun], /) -> Iterable[PlannedRun]:
        """Which of the running runs are not needed any more."""

    def later(self) -> int:
        """How many runs may follow at most, beside those that `more` has given."""


class Listed:
    """Runs that are all known; the first that fails ends the others, which are saved."""

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        self.runs = list(runs)

    def more(self, _: int) -> Sequence[PlannedRun]:
        """All of them, once."""
        runs, self.runs = self.runs, []
        return runs

    def ended(self, run: PlannedRun, failure: str | None) -> None:
        """Raises UserError where it failed."""
        if failure is not None:
            raise UserError(f"{run.name}: {failure}")

    def unwanted(self, _: Sequence[PlannedRun]) -> Iterable[PlannedRun]:
        """None."""
        return ()

    def later(self) -> int:
        """Those that have not been given, none after the first time."""
        return len(self.runs)


@dataclass(frozen=True)
class Count:
    """How far the training of many runs is; `ended` and `failed` are those of this command, `later` may follow."""

    waiting: int
    later: int
    running: Sequence[PlannedRun]
    ended: int
    failed: int
    seconds: float

    @property
    def total(self) -> int:
        """Runs that this command has to train, at most."""
        return self.waiting + self.later + len(self.running) + self.ended

    @property
    def seconds_left(self) -> float | None:
        """Estimated by the runs that have ended; None before the first."""
        return self.seconds / self.ended * (self.total - self.ended) if self.ended else None


Watch = Callable[[Count], None]


def train_all(runs: Sequence[PlannedRun], machine: Machine, tell: Tell, every: float = 30.0) -> None:
    """Train the runs that are not trained yet, as `train_programme`; raises UserError where one of them failed."""
    train_programme(Listed(runs), machine, tell, reporting(tell, every))


def reporting(tell: Tell, every: float = 30.0) -> Watch:
    """Report how far the training of many runs is, every so many seconds."""
    last = time.monotonic()

    def watch(count: Count) -> None:
        nonlocal last
        if time.monotonic() - last > every:
            last = time.monotonic()
            failed = f", {count.failed} failed" if count.failed else ""
            left = "" if count.seconds_left is None else f", about {count.seconds_left / 60:.1f} minutes left"
            running = "; ".join(map(progress_of, count.running))
            tell(f"{count.ended} of {count.total} runs done{failed}{left}; {running}")

    return watch


def train_programme(programme: Programme, machine: Machine, tell: Tell, watch: Watch) -> None:
    """Train the untrained runs of a programme, as many at a time as the launch permits, each as a job of its own.

    A training that diverges leaves `diverged.json` and does not stop the others. A run that another command is training
    in the same folder is waited for; interrupted ones are resumed. `tell` is called with a line when a run begins or
    ends, and `watch` often, with how far they are. Raises Stopped where SIGINT or SIGTERM arrived (the runs have been
    saved), UserError where the launcher cannot be used, and what the programme raises.
    """
    waiting, known, elsewhere, started = list[PlannedRun](), dict[Path, PlannedRun](), set[Path](), dict[Path, float]()
    begun, ended, failed = time.monotonic(), 0, 0
    with listening() as stop, Crew[Path](machine.launch, tell, lambda folder: known[folder].name) as crew:
        while True:
            while runs := programme.more(max(0, crew.room - len(waiting))):
                for run in runs:
                    if run.status not in UNTRAINED:
                        programme.ended(run, None)
                    elif run.folder not in known:
                        waiting.append(run)
                    known[run.folder] = run
            while crew.room and (free := _first_free(waiting, elsewhere, tell)) is not None:
                if free.status in UNTRAINED:
                    crew.start(free.folder, free.folder.name, train, free, machine)
                    started[free.folder] = time.monotonic()
                    tell(f"{free.name}: training into {free.folder}")
                else:
                    tell(f"{free.name}: done by another process")
                    programme.ended(free, None)
            if not waiting and not crew.running:
                return
            time.sleep(0.1)
            if stop.is_set():
                raise Stopped
            unwanted = {run.folder for run in programme.unwanted([known[folder] for folder in crew.running])}
            for folder in unwanted & {*crew.running}:
                crew.stop(folder)
            for folder, outcome in crew.ended():
                run = known[folder]
                if folder not in unwanted and outcome.failure is None and run.status in UNTRAINED:
                    waiting.append(run)  # saved after a signal, or another process had just begun it
                    continue
                ended += 1
                log = folder.with_name(f"{folder.name}.log")
                failure = None if folder in unwanted or run.status not in UNTRAINED else outcome.reason(log)
                failed += failure is not None
                how = run.status.value if failure is None else f"failed ({failure})"
                how = "stopped" if folder in unwanted and run.status in UNTRAINED else how
                tell(f"{run.name}: {how} after {time.monotonic() - started[folder]:.0f} s")
                programme.ended(run, failure)
            running = [known[folder] for folder in crew.running]
            watch(Count(len(waiting), programme.later(), running, ended, failed, time.monotonic() - begun))


def train(run: PlannedRun, machine: Machine) -> None:
    """Train, evaluate and report one run in this process; an interrupted run is resumed, a trial only trained.

    Returns at once where the run is trained, or another process is training it. Raises UserError where it cannot be
    trained.
    """
    use_large_pages()
    if machine.threads is not None:
        torch.set_num_threads(machine.threads)
    if run.status not in UNTRAINED:
        return
    try:
        _train(run, machine)
    except UserError:
        if not is_taken(run.folder) and run.status in UNTRAINED:
            raise


def _train(run: PlannedRun, machine: Machine) -> None:
    resume = run.status is Status.INTERRUPTED
    device, group = choose_device(machine.device), run.label
    experiment = Experiment(run.recipe, run.folder, device=device, resume=resume, extras=machine.track or ())
    with experiment.lock:
        try:
            with tracked(experiment, group, off=machine.track is None) as trackers:
                if experiment.train(trackers) is not StopReason.FINISHED:
                    return
                if run.trial:
                    write_atomic(run.folder / TRIED, json.dumps({"valid": experiment.trainer.progress.best}) + "\n")
                else:
                    experiment.finish()
                    experiment.attach(write_report([run.folder]))
        except Diverged as error:
            write_atomic(run.folder / "diverged.json", json.dumps({"reason": str(error)}) + "\n")


def _first_free(waiting: list[PlannedRun], elsewhere: set[Path], tell: Tell) -> PlannedRun | None:
    """Take the first run that no other process is training; each of the others is reported once."""
    for run in waiting:
        if not is_taken(run.folder):
            waiting.remove(run)
            return run
        if run.folder not in elsewhere:
            elsewhere.add(run.folder)
            tell(f"{run.name}: another process trains it in {run.folder}; waiting for that")
    return None


def progress_of(run: PlannedRun) -> str:
    """The epoch and loss of a running training, from its log."""
    try:
        record = parse_json((run.folder / "metrics.jsonl").read_bytes().splitlines()[-1])
        phases = [phase.epochs for phase in phases_of(run.recipe.training)]
        place = f"epoch {sum(phases[: record['phase']]) + record['epoch']:.2f} of {sum(phases)}"
        nll = record.get("nll", record.get("loss"))
        return f"{run.name} at {place}" + (f", {_loss(run, nll)}" if isinstance(nll, float) else "")
    except (OSError, ValueError, IndexError, KeyError):
        return f"{run.name} begins"


def _loss(run: PlannedRun, nll: float) -> str:
    reporting = run.recipe.data.reporting
    return f"ppl {reporting.of(nll):.1f}" if reporting.in_perplexity else f"nll {nll:.4f}"
