"""What training says of itself: lines of metrics.jsonl, the watchers, and the clock."""

import enum
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from elman.files import write_atomic
from elman.learning.progress import Progress
from elman.objective.loss import Loss
from elman.objective.perplexity import perplexity


# FOLDED learning/watching.py: How training is watched, and why it ended.
class Outcome(enum.Enum):
    """Why training returned."""

    FINISHED = "finished"
    OUT_OF_TIME = "out of time"
    INTERRUPTED = "interrupted"


class Watcher(Protocol):
    """Told what happens; a progress bar, TensorBoard."""

    def begin(self, epochs: int, windows: int, progress: Progress) -> None:
        """Training begins, or goes on, at `progress`; an epoch has about `windows` windows."""

    def step(self, progress: Progress, tokens: int, loss: float) -> None:
        """Windows are done, `tokens` counted in them; `loss` is their NLL a token."""

    def record(self, record: dict[str, Any]) -> None:
        """A line of metrics was written."""

    def end(self) -> None:
        """Training returned."""


# FOLDED learning/tally.py: Sums over training steps, kept where the model is, so that a step never waits for its device.
STEPS_BETWEEN_READINGS = {"cpu": 1, "cuda": 10}
"""By device. A CPU has nothing to wait for."""


class Sums(NamedTuple):
    """What some steps came to.

    Attributes:
        nll: the sum of NLLs (nats) over the positions.
        positions: how many were counted.
        penalty: the sum of the penalties.
        finite: whether every loss and gradient was.
        loss: the last step's objective.
        norm: the norm of its gradient.

    """

    nll: float
    positions: int
    penalty: float
    finite: bool
    loss: float
    norm: float


class Tally:
    """Adds steps up; reading is what waits for the device, so a GPU is asked only now and then.

    Args:
        device: where losses are.

    Attributes:
        patience: after how many steps to read.
        steps: how many are in the sums.

    """

    def __init__(self, device: torch.device) -> None:
        self.patience = STEPS_BETWEEN_READINGS[device.type]
        self._sums = torch.zeros(4, dtype=torch.float64, device=device)
        self._last = torch.zeros(2, dtype=torch.float64, device=device)
        self.steps = 0

    @property
    def due(self) -> bool:
        """Whether it is time to read."""
        return self.steps >= self.patience

    def add(self, loss: Loss, norm: Tensor) -> None:
        """Take a step in: its loss, and the norm of its gradient."""
        broken = ~(loss.objective.isfinite() & norm.isfinite())
        self._sums += torch.stack([loss.nll_sum.double(), loss.num_counted.double(), loss.penalty.double(), broken])
        self._last = torch.stack([loss.objective.double(), norm.double()])
        self.steps += 1

    def take(self) -> Sums:
        """The sums since the last time, which begin anew."""
        nll, positions, penalty, broken, loss, norm = torch.cat([self._sums, self._last]).tolist()
        self._sums.zero_()
        self.steps = 0
        return Sums(nll, int(positions), penalty, not broken, loss, norm)


# FOLDED learning/journal.py: metrics.jsonl: one JSON object a line, cut back on resume to what the checkpoint has seen.
class Journal:
    """Appends records to a file.

    Args:
        path: the file.
        keep_until: on resume, the step of the checkpoint: later records are dropped, since they will come again.

    """

    def __init__(self, path: Path, keep_until: int | None = None) -> None:
        self.path = path
        if keep_until is not None and path.exists():
            write_atomic(path, "".join(f"{line}\n" for line in _until(path.read_text().splitlines(), keep_until)))

    def append(self, record: dict[str, Any]) -> None:
        """Write one record and hand it to the operating system."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def _until(lines: list[str], step: int) -> list[str]:
    kept = []
    for line in lines:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        if record["step"] <= step:
            kept.append(line)
    return kept


# TARGET
class Recorder:
    """Adds up steps, writes lines and tells the watchers.

    Args:
        path: metrics.jsonl.
        device: where losses are.

    Attributes:
        watchers: told what happens; none at first.

    """

    def __init__(self, path: Path, device: torch.device) -> None:
        self.path, self.journal, self.tally = path, Journal(path), Tally(device)
        self.watchers: Sequence[Watcher] = ()
        self._told_at = self._saved_at = self._begun_at = time.monotonic()

    def resume(self, step: int) -> None:
        """Drop the lines after a checkpoint's step: they will come again."""
        self.journal = Journal(self.path, keep_until=step)

    def begin(self, epochs: int, windows: int, progress: Progress) -> None:
        """Training begins or goes on."""
        self._told_at = self._saved_at = self._begun_at = time.monotonic()
        for watcher in self.watchers:
            watcher.begin(epochs, windows, progress)

    def end(self) -> None:
        """Training returns."""
        for watcher in self.watchers:
            watcher.end()

    def add(self, loss: Loss, norm: Tensor) -> bool:
        """Take a step in; whether it is time to settle."""
        self.tally.add(loss, norm)
        return self.tally.due

    def settle(self, progress: Progress) -> Sums | None:
        """Take what the last steps came to into the progress, unless a loss was not finite; None: there were none."""
        if not self.tally.steps:
            return None
        sums = self.tally.take()
        if sums.finite:
            progress.nll_sum += sums.nll
            progress.count += sums.positions
            progress.penalty_sum += sums.penalty
            for watcher in self.watchers:
                watcher.step(progress, sums.positions, sums.nll / max(1, sums.positions))
        return sums

    def stretch(self, progress: Progress, epoch: float, facts: dict[str, Any]) -> None:
        """Write the line of a stretch of training, which ends here; `facts` stand in it too."""
        now, nll = time.monotonic(), progress.nll_sum / progress.count
        line = {
            "loss": nll,
            "penalty": progress.penalty_sum / progress.windows_logged,
            "perplexity": perplexity(nll),
            **facts,
            "tokens_per_s": progress.count / max(1e-9, now - self._told_at),
        }
        self.write("train", progress, epoch, line)
        self._told_at = now
        progress.nll_sum = progress.penalty_sum = 0.0
        progress.count = progress.windows_logged = 0

    def write(self, kind: str, progress: Progress, epoch: float, facts: dict[str, Any]) -> None:
        """Write a line with its place and time, and tell the watchers."""
        place = {"step": progress.step, "epoch": round(epoch, 4), "phase": progress.phase}
        seconds = progress.seconds + time.monotonic() - self._begun_at
        record = {"kind": kind, **place, **facts, "seconds": round(seconds, 2)}
        self.journal.append(record)
        for watcher in self.watchers:
            watcher.record(record)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is done meanwhile, such as validation, does not slow the speed that is told."""
        started = time.monotonic()
        yield
        self._told_at += time.monotonic() - started

    def due_to_save(self, minutes: float) -> bool:
        """Whether the last checkpoint is older than that."""
        return time.monotonic() - self._saved_at > 60 * minutes

    def saving(self, progress: Progress) -> None:
        """A checkpoint is being made: the time that was spent goes into the progress."""
        now = time.monotonic()
        progress.seconds += now - self._begun_at
        self._begun_at = self._saved_at = now
