"""What training says of itself: lines of metrics.jsonl, the watchers, and the clock."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elman.learning.journal import Journal
from elman.learning.progress import Progress
from elman.learning.tally import Sums, Tally
from elman.learning.watching import Watcher
from elman.objective.loss import Loss
from elman.units import perplexity


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
