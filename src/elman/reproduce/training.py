"""Training of planned runs, several at once; what remains of each is its run folder."""

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import torch

from elman.errors import Diverged, UserError
from elman.files import is_taken, write_atomic
from elman.formats import parse_json
from elman.jobs import listening, processes
from elman.learning.progress import phases_of
from elman.learning.trainer import StopReason
from elman.network.device import choose_device, use_large_pages
from elman.report.page import write_report
from elman.reproduce.planned import UNTRAINED, PlannedRun, Status
from elman.tasks.experiment import Experiment
from elman.tasks.tracking.trackers import tracked

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Machine:
    """How runs are trained: how many at once, the device and number of threads of each, and the trackers."""

    jobs: int = 1
    device: str = "auto"
    threads: int | None = None
    track: tuple[str, ...] = ()


class Stopped(Exception):  # noqa: N818
    """A signal asked to stop; every run is saved."""


def train_all(runs: Sequence[PlannedRun], machine: Machine, tell: Tell, every: float = 30.0) -> None:
    """Train the runs that are not trained yet, `machine.jobs` at a time, each in a process of its own.

    A training that diverges leaves `diverged.json` and does not stop the others. A run that another command is training
    in the same folder is waited for; interrupted ones are resumed. `tell` is called with a line when a run begins or
    ends, and `every` so many seconds with the progress of those that are running. Raises Stopped where SIGINT or
    SIGTERM arrived (the runs have been saved), UserError where a training failed for another reason.
    """
    waiting = list({run.folder: run for run in runs if run.status in UNTRAINED}.values())
    total, running, elsewhere = len(waiting), dict[Future[None], PlannedRun](), set[Path]()
    started, reported = dict[Path, float](), time.monotonic()
    with listening() as stop, processes(machine.jobs) as pool:
        while waiting or running:
            while len(running) < machine.jobs and (run := _first_free(waiting, elsewhere, tell)) is not None:
                if run.status in UNTRAINED:
                    running[pool.submit(train, run, machine)] = run
                    started[run.folder] = time.monotonic()
                    tell(f"{run.name}: training into {run.folder}")
                else:
                    tell(f"{run.name}: done by another process")
            time.sleep(0.1)
            if stop.is_set():
                raise Stopped
            for future in [future for future in running if future.done()]:
                run = running.pop(future)
                if _refused(future, run):
                    waiting.append(run)
                else:
                    tell(f"{run.name}: {run.status.value} after {time.monotonic() - started[run.folder]:.0f} s")
            if time.monotonic() - reported > every:
                reported = time.monotonic()
                done = total - len(waiting) - len(running)
                tell(f"{done} of {total} runs done; " + "; ".join(map(_progress, running.values())))


def train(run: PlannedRun, machine: Machine) -> None:
    """Train, evaluate and report one run in this process; an interrupted run is resumed.

    Raises UserError where another process is training it, or it cannot be trained.
    """
    use_large_pages()
    if machine.threads is not None:
        torch.set_num_threads(machine.threads)
    resume = run.status is Status.INTERRUPTED
    device, group = choose_device(machine.device), run.label
    experiment = Experiment(run.recipe, run.folder, device=device, resume=resume, extras=machine.track)
    with experiment.lock:
        try:
            with tracked(experiment, group) as trackers:
                if experiment.train(trackers) is StopReason.FINISHED:
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


def _refused(future: Future[None], run: PlannedRun) -> bool:
    """Whether a training was refused because another process had just begun the same run; other errors are raised."""
    try:
        future.result()
    except UserError as error:
        if is_taken(run.folder) or run.status not in UNTRAINED:
            return True
        raise UserError(f"{run.name}: {error}") from None
    return False


def _progress(run: PlannedRun) -> str:
    """The epoch and perplexity of a running training, from its log."""
    try:
        record = parse_json((run.folder / "metrics.jsonl").read_bytes().splitlines()[-1])
        phases = [phase.epochs for phase in phases_of(run.recipe.training)]
        place = f"epoch {sum(phases[: record['phase']]) + record['epoch']:.2f} of {sum(phases)}"
        return f"{run.name} at {place}" + (f", ppl {record['perplexity']:.1f}" if "perplexity" in record else "")
    except (OSError, ValueError, IndexError, KeyError):
        return f"{run.name} begins"
