"""The windows of training, epoch by epoch, and which come next."""

import itertools
from collections.abc import Callable, Iterator, Sequence

from elman import config
from elman.data.batches import Batch
from elman.data.windows import Span, Windows
from elman.learning.progress import Progress

PHASE = 1_000_000
"""The number of the first epoch of the second phase, whose windows are drawn afresh."""


class Course:
    """The windows of the epochs of a phase.

    Args:
        windows: from the cap on random windows (`window.max_extra`) to the windows of the training data.
        window: that of the phase.
    """

    def __init__(self, windows: Callable[[int | None], Windows], window: config.Window) -> None:
        self._windows, self._window = windows(window.max_extra), window
        self._planned: tuple[int, Sequence[Span]] = (-1, ())

    def spans(self, progress: Progress) -> Sequence[Span]:
        """The windows of the present epoch."""
        number = progress.phase * PHASE + progress.epoch
        if self._planned[0] != number:
            self._planned = (number, self._windows.spans(number))
        return self._planned[1]

    def ahead(self, progress: Progress) -> Iterator[Span]:
        """The windows from here on, as if the phase had no end."""
        yield from itertools.islice(self.spans(progress), progress.window, None)
        for epoch in itertools.count(progress.epoch + 1):
            yield from self._windows.spans(progress.phase * PHASE + epoch)

    def batch(self, span: Span) -> Batch:
        """The window of a span."""
        return self._windows.batch(span)

    def rate_share(self, span: Span) -> float:
        """The part of the learning rate that a window has: random windows have one in proportion to their length."""
        return span.length / self._window.length if self._window.random else 1.0

    def epoch(self, progress: Progress) -> float:
        """Epochs done in this phase, with a fraction."""
        return progress.epoch + progress.window / len(self.spans(progress))
