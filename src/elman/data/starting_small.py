"""Starting small (Elman 1993): the text, or the length of memory, changes from epoch to epoch."""

import functools
from collections.abc import Callable, Sequence

import numpy as np
import torch

from elman.data.windows import Batch, Span, TrainingWindows, Windows


class StagedWindows:
    """Windows chosen for each epoch; `choose` returns the same or equal ones for epochs that share them."""

    def __init__(self, choose: Callable[[int], Windows]) -> None:
        self._of = functools.lru_cache(maxsize=2)(choose)

    def spans(self, epoch: int) -> list[Span]:
        """The windows of an epoch, in order."""
        return [span._replace(epoch=epoch) for span in self._of(epoch).spans(epoch)]

    def batch(self, span: Span) -> Batch:
        """The window of a span."""
        return self._of(span.epoch).batch(span)


class ForgetfulWindows:
    """Windows of a few words, all columns fresh at the beginning of each: nothing earlier is remembered.

    Elman 1993 resets the context units after every third or fourth word, later after more. A network that forgets in
    this way sees no dependency that is longer than the window. `words` are the least and the greatest number of words;
    each length is drawn with equal probability.
    """

    def __init__(self, windows: TrainingWindows, words: tuple[int, int], seed: int = 0) -> None:
        self.windows, self.words, self.seed = windows, words, seed

    def spans(self, epoch: int) -> list[Span]:
        """The windows of an epoch, in order; together they cover every step but the last once."""
        draw, last = np.random.default_rng([self.seed, epoch]), self.windows.steps - 1
        spans, at = [], 0
        while at < last:
            length = min(int(draw.integers(self.words[0], self.words[1], endpoint=True)), last - at)
            spans.append(Span(at, length))
            at += length
        return spans

    def batch(self, span: Span) -> Batch:
        """The window of a span, every column fresh."""
        return self.windows.batch(span)._replace(fresh=torch.ones(self.windows.batch_size, dtype=torch.bool))


def stage_of(epochs: Sequence[int], epoch: int) -> int:
    """The stage of an epoch; the last has no end.

    Example:
        >>> [stage_of([2, 1], epoch) for epoch in range(5)]
        [0, 0, 1, 1, 1]
    """
    return min(sum(epoch >= sum(epochs[: index + 1]) for index in range(len(epochs))), len(epochs) - 1)
