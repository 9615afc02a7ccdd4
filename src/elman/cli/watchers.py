"""Watchers of training: a bar on stderr, scalars for TensorBoard."""

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from elman.cli import show
from elman.objective import perplexity

if TYPE_CHECKING:
    from elman.learning.progress import Progress as TrainingProgress


class TrainingBar:
    """A bar with loss, perplexity, speed and time left; a line for each validation.

    Args:
        in_perplexity: whether losses are also told as perplexities; else as nats a step.

    """

    def __init__(self, *, in_perplexity: bool = True) -> None:
        self.console, self.in_perplexity = show.log(), in_perplexity

    def begin(self, epochs: int, windows: int, progress: "TrainingProgress") -> None:
        """Show the bar."""
        self.total = epochs * windows
        columns = (
            "loss {task.fields[loss]:.3f}",
            *(["ppl {task.fields[ppl]:.1f}"] if self.in_perplexity else []),
            f"{{task.fields[speed]:,.0f}} {'tok' if self.in_perplexity else 'steps'}/s",
        )
        self.bar = Progress(
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            *map(TextColumn, columns),
            TextColumn("{task.fields[left]} left"),
            console=self.console,
            transient=True,
        )
        fields: dict[str, Any] = {
            "epoch": progress.epoch + 1,
            "loss": math.nan,
            "ppl": math.nan,
            "speed": 0.0,
            "left": "?",
        }
        self.task = self.bar.add_task("", total=self.total, completed=progress.step, **fields)
        self.smooth, self.tokens, self.first = math.nan, 0, progress.step
        self.started = time.monotonic()
        self.bar.start()

    def step(self, progress: "TrainingProgress", tokens: int, loss: float) -> None:
        """Advance."""
        self.smooth = loss if math.isnan(self.smooth) else 0.98 * self.smooth + 0.02 * loss
        self.tokens += tokens
        elapsed = time.monotonic() - self.started
        left = elapsed / (progress.step - self.first) * max(0, self.total - progress.step)
        self.bar.update(
            self.task,
            completed=progress.step,
            epoch=progress.epoch + 1,
            loss=self.smooth,
            ppl=perplexity(self.smooth),
            speed=self.tokens / elapsed,
            left=duration(left),
        )

    def record(self, record: dict[str, Any]) -> None:
        """A line for validations and events; where there is no terminal, for training too."""
        place = f"epoch {record['epoch']:6.2f}  step {record['step']:6d}"
        if record["kind"] == "valid":
            note = "  best so far" if record["best"] else ""
            note += "  (averaged weights)" if record["averaged"] else ""
            self.console.print(f"{place}  valid {self._told(record, 'nll')}  {duration(record['seconds'])}{note}")
        elif record["kind"] == "event":
            self.console.print(f"{place}  {record['event']}: {record['message']}")
        elif not self.console.is_terminal:
            speed = f"{record['tokens_per_s']:,.0f} {'tok' if self.in_perplexity else 'steps'}/s"
            self.console.print(f"{place}  train {self._told(record, 'loss')}  lr {record['lr']:.4g}  {speed}")

    def _told(self, record: dict[str, Any], loss: str) -> str:
        return f"ppl {record['perplexity']:8.2f}" if self.in_perplexity else f"nll {record[loss]:8.4f}"

    def end(self) -> None:
        """Remove the bar."""
        self.bar.stop()


class TensorBoard:
    """Scalars for TensorBoard (pip install elman[tensorboard])."""

    def __init__(self, folder: Path) -> None:
        from elman.errors import UserError

        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise UserError("--tensorboard needs the package tensorboard: pip install 'elman[tensorboard]'") from None
        self.writer = SummaryWriter(str(folder / "tensorboard"))

    def begin(self, epochs: int, windows: int, progress: "TrainingProgress") -> None:
        """Nothing to do."""

    def step(self, progress: "TrainingProgress", tokens: int, loss: float) -> None:
        """Nothing to do."""

    def record(self, record: dict[str, Any]) -> None:
        """Write the numbers of a record."""
        for key, value in record.items():
            if key not in ("kind", "step", "phase", "event", "message"):
                self.writer.add_scalar(f"{record['kind']}/{key}", float(value), record["step"])

    def end(self) -> None:
        """Flush."""
        self.writer.close()


def duration(seconds: float) -> str:
    """1:05:09 or 5:09.

    Example:
        >>> duration(3909), duration(309)
        ('1:05:09', '5:09')
    """
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02d}:{second:02d}" if hour else f"{minute}:{second:02d}"
