"""What a training writes into its run folder: lines of metrics, the checkpoint, the best model so far."""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import torch
from torch import Tensor

from elman.errors import UserError
from elman.files import explain, json_text, write_atomic
from elman.learning import checkpoint
from elman.learning.checkpoint import CHECKPOINT, BestModel
from elman.learning.progress import Progress
from elman.learning.team import ALONE, Team
from elman.learning.update import Update
from elman.network.device import widest
from elman.objective import perplexity
from elman.objective.loss import Loss

STEPS_BETWEEN_READINGS = {"cpu": 1}
"""By device: reading a loss waits for the device, so a GPU is read only every few steps."""


class Watcher(Protocol):
    """Follows a training run, such as a progress bar or a tracker of experiments; a method does nothing by default."""

    def begin(self, epochs: int, windows: int, progress: Progress) -> None:
        """Training begins or resumes at `progress`; an epoch has about `windows` windows."""

    def step(self, progress: Progress, tokens: int, loss: float) -> None:
        """One or more windows are done; `tokens` were counted in them and `loss` is their NLL per token."""

    def branch(self, done: int, steps: int) -> None:
        """A branch, which predicts the loss, has taken `done` of its `steps`; after the last it is validated."""

    def record(self, record: dict[str, Any]) -> None:
        """A line of metrics was written."""

    def end(self) -> None:
        """Training returned."""

    def conclude(self, figures: Mapping[str, float]) -> None:
        """The best model was evaluated; figures by `SPLIT/NAME`."""

    def attach(self, path: Path) -> None:
        """A file about the run, such as its report, was written into its folder."""


class Folder:
    """A run folder in which a training writes; of several processes the first one writes, and all sum the losses.

    Losses are summed on their device until they are read. There are no `watchers` at first.

    Args:
        path: the run folder.
        device: of the losses.
        facts: stored in the checkpoint and in the best model: the recipe, the digests of data and vocabulary.
        team: the processes that train the run.
    """

    def __init__(
        self, path: Path, device: torch.device, facts: Mapping[str, Any] | None = None, team: Team = ALONE
    ) -> None:
        self.path, self.facts, self.team = path, facts or {}, team
        self.checkpoint, self.metrics, self.best = path / CHECKPOINT, path / "metrics.jsonl", BestModel(path)
        self.watchers: Sequence[Watcher] = ()
        self._place: os.stat_result | None = None
        self._steps_between = STEPS_BETWEEN_READINGS.get(device.type, 10)
        self._wide = widest(device)
        self._sums = torch.zeros(4, dtype=self._wide, device=device)  # NLL, positions, penalty, steps not finite
        self._last = torch.zeros(2, dtype=self._wide, device=device)  # objective, gradient norm
        self._unread = self._tokens = 0  # steps since the sums were read; tokens since `_line_at`
        self._lines = 0
        self._line_at = self._saved_at = self._counted_to = time.monotonic()

    @property
    def begun(self) -> bool:
        return self.best.exists or self.checkpoint.exists()

    def clear(self) -> None:
        """Begin with no lines: a run that was killed before its first checkpoint may have left some."""
        if self.team.leads:
            self.metrics.unlink(missing_ok=True)

    def resume(self, progress: Progress) -> None:
        """Drop the lines after a checkpoint, which will be written again, those cut short, and the model of a stop.

        Raises UserError where the best model that `progress` has is missing, damaged or of another run.
        """
        if not self.team.leads:
            return
        self.best.restore()
        if progress.best is not None:
            self.best.require(self.facts)
        lines = self.metrics.read_bytes().splitlines(keepends=True) if self.metrics.exists() else []
        kept = [line for line in lines[: progress.lines] if line.endswith(b"\n")]
        if kept != lines:
            write_atomic(self.metrics, b"".join(kept))
        self._lines = len(kept)

    def begin(self, epochs: int, windows: int, progress: Progress) -> None:
        self._line_at = self._saved_at = self._counted_to = time.monotonic()
        self._tokens = 0
        for watcher in self.watchers:
            watcher.begin(epochs, windows, progress)

    def add(self, loss: Loss, norm: Tensor) -> None:
        """Add a step, its loss and the norm of its gradient, without waiting for the device."""
        broken = ~(loss.objective.isfinite() & norm.isfinite())
        parts = loss.nll_sum, loss.num_counted, loss.penalty, broken
        self._sums += torch.stack([part.to(self._wide) for part in parts])
        self._last = torch.stack([loss.objective.to(self._wide), norm.to(self._wide)])
        self._unread += 1

    @property
    def due(self) -> bool:
        return self._unread >= self._steps_between

    def read(self, progress: Progress) -> str | None:
        """Fold the pending step sums into the progress; where a loss was not finite, return the last one's figures."""
        if not self._unread:
            return None
        nll, positions, penalty, broken, loss, norm = torch.cat([self._sums, self._last]).tolist()
        self._sums.zero_()
        self._unread = 0
        if broken:
            return f"loss {loss:.3g}, gradient norm {norm:.3g}"
        progress.nll_sum += nll
        progress.count += int(positions)
        self._tokens += int(positions)
        progress.penalty_sum += penalty
        for watcher in self.watchers:
            watcher.step(progress, int(positions), nll / max(1, int(positions)))
        return None

    def write_train(self, progress: Progress, epoch: float, facts: dict[str, Any]) -> None:
        """Write the means over the windows since the last such line, with `facts`, and begin new sums."""
        now, nll = time.monotonic(), progress.nll_sum / progress.count
        line = {
            "loss": nll,
            "penalty": progress.penalty_sum / progress.windows_logged,
            "perplexity": perplexity(nll),
            **facts,
            "tokens_per_s": self._tokens / max(1e-9, now - self._line_at),
        }
        self.write("train", progress, epoch, line)
        self._line_at, self._tokens = now, 0
        progress.nll_sum = progress.penalty_sum = 0.0
        progress.count = progress.windows_logged = 0

    def write(self, kind: str, progress: Progress, epoch: float, facts: dict[str, Any]) -> None:
        """Write a line with its place in training and its time, and notify the watchers.

        Numbers that are not finite are written as null. Raises UserError where the file cannot be written, or the
        folder has been removed.
        """
        if not self.team.leads:
            return
        self._require_place()
        place = {"step": progress.step, "epoch": round(epoch, 4), "phase": progress.phase}
        record = {"kind": kind, **place, **facts, "seconds": round(self.seconds(progress), 2)}
        try:
            with self.metrics.open("a", encoding="utf-8") as file:
                file.write(json_text(record) + "\n")
        except OSError as error:
            raise UserError(explain(self.metrics, error)) from error
        self._lines += 1
        for watcher in self.watchers:
            watcher.record(record)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time of the block, such as a validation, from the reported training speed; blocks may nest."""
        started, begun = time.monotonic(), self._line_at
        yield
        self._line_at = begun + time.monotonic() - started

    def seconds(self, progress: Progress) -> float:
        """The time spent training until now, before a resumption included."""
        return progress.seconds + time.monotonic() - self._counted_to

    def due_to_save(self, minutes: float) -> bool:
        return time.monotonic() - self._saved_at > 60 * minutes

    def save(self, progress: Progress, update: Update) -> str:
        """Write the checkpoint, with the time and the lines so far, and return its digest; "" where another does.

        Raises UserError where the folder has been removed, or the weights of two processes differ.
        """
        now = time.monotonic()
        progress.seconds += now - self._counted_to
        self._counted_to = self._saved_at = now
        progress.lines = self._lines
        with contextlib.suppress(OSError), self.metrics.open("rb") as file:
            os.fsync(file.fileno())
        if self.team.size > 1:
            self.team.require_same(checkpoint.digest_of(checkpoint.model_tensors(update.model)), "weights")
        if update.average is not None:
            progress.average_count = update.average.count
        facts, tensors = {**self.facts, "progress": msgspec.to_builtins(progress)}, update.tensors()
        if not self.team.leads:  # every process asks for the tensors
            return ""
        self._require_place()
        return checkpoint.save(self.checkpoint, tensors, facts, parents=False)

    def save_best(self, progress: Progress, epoch: float, nll: float, update: Update, *, stopped: bool = False) -> None:
        """Write the present model, averaged where weights are, as the best one, of a validation NLL (nats per token).

        The best model of a training that is stopped is removed when it is resumed. Raises UserError where the folder
        has been removed.
        """
        if not self.team.leads:
            return
        facts = {**self.facts, "step": progress.step, "epoch": epoch, "valid_nll": nll}
        facts["parameters"] = sum(one.numel() for one in update.model.parameters())  # the file has buffers too
        if update.average is not None:
            facts["averaged"] = True
        self._require_place()
        with update.averaged():
            self.best.save(update.model, facts, provisional=stopped)

    def _require_place(self) -> None:
        """Raise UserError where the run folder has been removed, so that it is not made again without its recipe."""
        try:
            found = self.path.stat()
            self._place = self._place or found
            same = os.path.samestat(found, self._place)
        except OSError:
            same = False
        if not same:
            raise UserError(f"{self.path}: removed while the run was trained in it; training has stopped")
