"""Progress on standard error: bars, the course of training."""

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from elman.objective import perplexity

if TYPE_CHECKING:
    from elman.learning.progress import Progress as TrainingProgress
    from elman.tasks.text.model import TextModel

Model = TypeVar("Model", bound="TextModel")


def log() -> Console:
    """The console of logs and progress."""
    return Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def text_column(form: str) -> TextColumn:
    """A column of a bar; brackets in it are shown as they are."""
    return TextColumn(form, markup=False)


def bar(*columns: str | ProgressColumn) -> Progress:
    """A progress bar with extra columns, such as of text; nothing where standard error is no terminal."""
    texts = [text_column(column) if isinstance(column, str) else column for column in columns]
    parts = (text_column("{task.description}"), BarColumn(bar_width=24), TaskProgressColumn(), *texts)
    console = log()
    return Progress(*parts, console=console, transient=True, disable=not console.is_terminal)


@contextlib.contextmanager
def counting(description: str, instead: str | None = None) -> Iterator[Callable[[int, int], None]]:
    """A bar for a task that reports (done, total); without a terminal the line `instead`, once it has begun."""
    with bar() as shown:
        task = shown.add_task(description, total=None)
        lines = [instead] if instead is not None and shown.disable else []

        def advance(done: int, total: int) -> None:
            if lines:
                shown.console.print(lines.pop())
            shown.update(task, completed=done, total=total)

        yield advance


def scoring(models: Iterable[Model]) -> Iterator[tuple[Model, Callable[[int, int], None]]]:
    """Each model, with a bar for what is scored by it until the next one is asked for."""
    for model in models:
        with counting(f"scoring by {model.path}") as advance:
            yield model, advance


@contextlib.contextmanager
def preparing(description: str = "reading data") -> Iterator[Callable[[str, int, int], None]]:
    """A bar for the preparation of data, which reports (what, bytes done, bytes in all); it has speed and time left."""
    with bar(TransferSpeedColumn(), TimeRemainingColumn()) as shown:
        tasks = {description: shown.add_task(description, total=None)}

        def advance(what: str, done: int, total: int) -> None:
            if what not in tasks:  # each has a speed of its own
                for task in tasks.values():
                    shown.update(task, visible=False)
                tasks[what] = shown.add_task(what)
            shown.update(tasks[what], completed=done, total=total)

        yield advance


class TrainingBar:
    """A bar with loss, perplexity, speed and time left; a line for each validation.

    Args:
        in_perplexity: report losses as perplexities too; otherwise as nats per step.
        units: what is counted where losses are no perplexities.
        heading: prints what precedes the first line, once it is certain that there is something to train.
    """

    def __init__(
        self, *, in_perplexity: bool = True, units: str = "steps", heading: Callable[[], None] | None = None
    ) -> None:
        self.console, self.in_perplexity, self._heading = log(), in_perplexity, heading
        self.units = "tok" if in_perplexity else units

    def begin(self, epochs: int, windows: int, progress: "TrainingProgress") -> None:
        """Show the bar."""
        self._head()
        self.total = epochs * windows
        self.bar = Progress(
            text_column("epoch {task.fields[epoch]}{task.fields[branch]}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            text_column("{task.fields[figures]}"),
            console=self.console,
            transient=True,
        )
        done, epoch = progress.step, progress.epoch + 1
        self.task = self.bar.add_task("", total=self.total, completed=done, epoch=epoch, figures="", branch="")
        self.smooth, self.tokens, self.first = math.nan, 0, progress.step
        self.started = time.monotonic()
        self.bar.start()

    def step(self, progress: "TrainingProgress", tokens: int, loss: float) -> None:
        """Update the bar after a training step."""
        self.smooth = loss if math.isnan(self.smooth) else 0.98 * self.smooth + 0.02 * loss
        self.tokens += tokens
        elapsed = time.monotonic() - self.started
        left = elapsed / (progress.step - self.first) * max(0, self.total - progress.step)
        measured = f"loss {self.smooth:.3f}" + (f" ppl {perplexity(self.smooth):.1f}" if self.in_perplexity else "")
        figures = f"{measured} {self.tokens / elapsed:,.0f} {self.units}/s {duration(left)} left"
        self.bar.update(self.task, completed=progress.step, epoch=progress.epoch + 1, figures=figures)

    def branch(self, done: int, steps: int) -> None:
        """Show the place in a branch that predicts the loss; its time does not count as steps."""
        now = time.monotonic()
        if done == 0:
            self.branched = now
        ended = done == steps
        if ended:
            self.started += now - self.branched
        self.bar.update(self.task, branch="" if ended else f", branch {done}/{steps}")

    def record(self, record: dict[str, Any]) -> None:
        """Print a line for a validation or an event; without a terminal for training too."""
        self._head()
        place = f"epoch {record['epoch']:6.2f}  step {record['step']:6d}"
        if record["kind"] == "valid":
            note = "  best so far" if record["best"] else ""
            note += "  (averaged weights)" if record["averaged"] else ""
            self.console.print(f"{place}  valid {self._loss(record, 'nll')}  {duration(record['seconds'])}{note}")
        elif record["kind"] == "event":
            self.console.print(f"{place}  {record['event']}: {record['message']}")
        elif not self.console.is_terminal:
            speed = f"{record['tokens_per_s']:,.0f} {self.units}/s"
            self.console.print(f"{place}  train {self._loss(record, 'loss')}  lr {record['lr']:.4g}  {speed}")

    def _head(self) -> None:
        heading, self._heading = self._heading, None
        if heading is not None:
            heading()

    def _loss(self, record: dict[str, Any], key: str) -> str:
        return f"ppl {record['perplexity']:8.2f}" if self.in_perplexity else f"nll {record[key]:8.4f}"

    def end(self) -> None:
        """Remove the bar."""
        self.bar.stop()

    def conclude(self, figures: Mapping[str, float]) -> None:
        """Nothing to do: the command prints the results."""

    def attach(self, path: Path) -> None:
        """Nothing to do."""


def duration(seconds: float) -> str:
    """1:05:09 or 5:09.

    Example:
        >>> duration(3909), duration(309)
        ('1:05:09', '5:09')
    """
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02d}:{second:02d}" if hour else f"{minute}:{second:02d}"
