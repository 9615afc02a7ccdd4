"""Several trainings at once, each in a process of its own; what they leave is their run folders."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elman.errors import UserError
from elman.files import is_taken, write_atomic
from elman.learning.trainer import listening
from elman.reproduce.runs import PlannedRun, Status, Store

_UNTRAINED = Status.MISSING, Status.INTERRUPTED
_NOT_FINITE = "the loss is not finite"


@dataclass(frozen=True)
class Machine:
    """How trainings are run: how many at once, and `--device` and `--threads` of each."""

    jobs: int = 1
    device: str = "auto"
    threads: int | None = None


@dataclass
class _Child:
    run: PlannedRun
    process: subprocess.Popen[bytes]
    started: float = field(default_factory=time.monotonic)

    @property
    def came_second(self) -> bool:
        """Whether it was refused since another process had just begun the same run."""
        return self.process.returncode == 2 and (is_taken(self.run.folder) or self.run.status not in _UNTRAINED)


class Stopped(Exception):  # noqa: N818
    """A signal asked to stop; every run is saved."""


def train_all(
    runs: Sequence[PlannedRun],
    store: Store,
    machine: Machine,
    tell: Callable[[str], None],
    every: float = 30.0,
) -> None:
    """Train what is not trained yet, `machine.jobs` at a time.

    A training whose loss ceases to be finite leaves `diverged.json` and does not stop the others. A run that another
    process trains, of the same folder by another command, is waited for.

    Args:
        runs: any; those that are done are left out, those that were interrupted go on.
        store: their folder.
        machine: the processes.
        tell: told a line when a run begins and ends, and how far those at work are.
        every: seconds between two lines on the progress.

    Raises:
        Stopped: SIGINT or SIGTERM came; the children were asked to save and have ended.
        UserError: a training failed for another reason.

    """
    waiting = list({run.folder: run for run in runs if run.status in _UNTRAINED}.values())
    total, children, elsewhere, told = len(waiting), list[_Child](), set[Path](), time.monotonic()
    with listening() as stop:
        try:
            while waiting or children:
                while len(children) < machine.jobs and (run := _first_free(waiting, elsewhere, tell)) is not None:
                    if run.status in _UNTRAINED:
                        children.append(_start(run, store, machine))
                        tell(f"{run.name}: training into {run.folder}")
                    else:
                        tell(f"{run.name}: done by another process")
                time.sleep(0.1)
                for child in [child for child in children if child.process.poll() is not None]:
                    children.remove(child)
                    if child.came_second:
                        waiting.append(child.run)
                    else:
                        tell(_finish(child))
                if stop.is_set():
                    raise Stopped
                if time.monotonic() - told > every:
                    told = time.monotonic()
                    done = total - len(waiting) - len(children)
                    tell(f"{done} of {total} runs done; " + "; ".join(map(_progress, children)))
        finally:
            for child in children:
                child.process.terminate()
            for child in children:
                child.process.wait()


def _first_free(waiting: list[PlannedRun], elsewhere: set[Path], tell: Callable[[str], None]) -> PlannedRun | None:
    """Take the first run that no other process trains; those that are trained `elsewhere` are told of once."""
    for run in waiting:
        if not is_taken(run.folder):
            waiting.remove(run)
            return run
        if run.folder not in elsewhere:
            elsewhere.add(run.folder)
            tell(f"{run.name}: another process trains it in {run.folder}; waiting for that")
    return None


def _start(run: PlannedRun, store: Store, machine: Machine) -> _Child:
    """Begin or go on; the session of its own keeps the terminal's Ctrl-C from the child, which is told by us."""
    resume = ["--resume"] if run.status is Status.INTERRUPTED else []
    threads = [] if machine.threads is None else ["--threads", str(machine.threads)]
    command = [sys.executable, "-m", "elman", "train", str(store.recipe_file(run)), "--out", str(run.folder)]
    run.log.parent.mkdir(parents=True, exist_ok=True)
    with run.log.open("ab") as log:
        return _Child(
            run,
            subprocess.Popen(
                [*command, *resume, "--device", machine.device, *threads],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            ),
        )


def _finish(child: _Child) -> str:
    run, status = child.run, child.process.returncode
    seconds = time.monotonic() - child.started
    if status == 0 and run.status is Status.DONE:
        return f"{run.name}: done in {seconds:.0f} s"
    last = _last_line(run.log)
    if _NOT_FINITE in last:
        write_atomic(run.folder / "diverged.json", json.dumps({"reason": last}) + "\n")
        return f"{run.name}: diverged after {seconds:.0f} s"
    raise UserError(f"{run.name}: its training ended with status {status}: {last or 'no message'} (log: {run.log})")


def _last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix("elman: ") if lines else ""


def _progress(child: _Child) -> str:
    """How far a child is, by the journal of its run."""
    try:
        record = json.loads((child.run.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
        place = f"epoch {record['epoch']:.2f} of {child.run.recipe.training.epochs}"
        return f"{child.run.name} at {place}" + (f", ppl {record['perplexity']:.1f}" if "perplexity" in record else "")
    except (OSError, ValueError, IndexError, KeyError):
        return f"{child.run.name} begins"
