"""Whole pieces read in windows, several side by side."""

import functools
import heapq
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elman.data.batches import Batch
from elman.data.windows import Span
from elman.errors import UserError
from elman.kinds.music.pitches import Roll

Integers = npt.NDArray[np.int64]


class _Layout(NamedTuple):
    """What a column reads in each window: the first step, the number of steps, whether a piece begins, its interval."""

    first: Integers
    steps: Integers
    fresh: npt.NDArray[np.bool_]
    interval: Integers


class PieceWindows:
    """Pieces in B columns: a column reads one piece after another, each from a window of its own.

    The first step of a piece is predicted from a frame of silence and an initial state (`Batch.fresh`). The rest of a
    piece's last window is padding, which the mask leaves out: every step is a target exactly once, and no other piece
    affects its prediction.

    The pieces follow one another in `frames`, uint8 [n, P], with `lengths` steps each; windows have at most `length`
    steps. The seed draws a new order of pieces for every epoch; without one the longest is first, which pads least, or
    in one column, which needs no padding, they keep their order. With a seed each piece is moved, in every epoch again,
    by an interval of at most `transpose` semitones up or down, all intervals that keep its notes within the P pitches
    being equally likely.

    Raises UserError where there are fewer pieces than columns and a seed is set (training).
    """

    def __init__(
        self,
        frames: Roll,
        lengths: Integers,
        columns: int,
        length: int,
        *,
        seed: int | None = None,
        transpose: int = 0,
    ) -> None:
        if seed is not None and columns > len(lengths):
            raise UserError(
                f"pieces to train on: {len(lengths)}, fewer than training.batch_size = {columns}; set it lower (--set"
                f" training.batch_size={len(lengths)}), or use more pieces"
            )
        self.frames, self.lengths, self.length = frames, lengths, length
        self.seed, self.transpose = seed, transpose
        self.starts = np.cumsum(lengths) - lengths
        self.streams = min(columns, len(lengths))
        self._layout = functools.lru_cache(maxsize=1)(self._lay)

    @property
    def num_windows(self) -> int:
        return len(self._layout(0).steps)

    def spans(self, epoch: int) -> list[Span]:
        longest = self._layout(epoch).steps.max(axis=1)
        return [Span(index * self.length, int(steps), epoch) for index, steps in enumerate(longest)]

    def batch(self, span: Span) -> Batch:
        """The window of a span: frames before and after each step, uint8 [T, B, P]."""
        return self._window(span)[0]

    def __iter__(self) -> Iterator[tuple[Batch, Tensor]]:
        """The first epoch's windows, each with the position in the stream of every target, [T, B] (-1: padding)."""
        return map(self._window, self.spans(0))

    def _window(self, span: Span) -> tuple[Batch, Tensor]:
        first, count, fresh, interval = (part[span.start // self.length] for part in self._layout(span.epoch))
        steps = np.arange(span.length)[:, None]
        mask = steps < count
        at = np.where(mask, first + steps, 0)
        known = mask & ~(fresh & (steps == 0))
        inputs = self.frames[np.where(known, at - 1, 0)] * known[..., None]
        targets = self.frames[at] * mask[..., None]
        for column in np.flatnonzero(interval):
            for part in (inputs, targets):
                part[:, column] = np.roll(part[:, column], interval[column], axis=-1)
        batch = Batch(*(torch.from_numpy(part) for part in (inputs, targets, mask, fresh)))  # type: ignore[arg-type]
        return batch, torch.from_numpy(np.where(mask, at, -1))

    def _lay(self, epoch: int) -> _Layout:
        """Each piece goes to the column that ends first; depends on the seed and the epoch's number alone."""
        order = np.arange(len(self.lengths)) if self.streams == 1 else np.argsort(-self.lengths, kind="stable")
        intervals = np.zeros(len(self.lengths), np.int64)
        if self.seed is not None:
            random = np.random.default_rng([self.seed, epoch])
            order = random.permutation(len(self.lengths))
            if self.transpose:
                intervals = random.integers(*_intervals(self.frames, self.starts, self.transpose), endpoint=True)
        done = [(0, column) for column in range(self.streams)]
        places = []
        for piece in order:
            window, column = heapq.heappop(done)
            places.append((piece, window, column))
            heapq.heappush(done, (window + math.ceil(self.lengths[piece] / self.length), column))
        shape = (max(window for window, _ in done), self.streams)
        first, count, interval = (np.zeros(shape, np.int64) for _ in range(3))
        layout = _Layout(first, count, np.zeros(shape, np.bool_), interval)
        for piece, window, column in places:
            steps = np.arange(0, self.lengths[piece], self.length)
            rows = slice(window, window + len(steps))
            layout.first[rows, column] = self.starts[piece] + steps
            layout.steps[rows, column] = np.minimum(self.lengths[piece] - steps, self.length)
            layout.fresh[window, column] = True
            layout.interval[rows, column] = intervals[piece]
        return layout


def _intervals(frames: Roll, starts: Integers, most: int) -> tuple[Integers, Integers]:
    """For each piece the lowest and the highest interval of at most `most` semitones that keeps its notes in place."""
    used = np.maximum.reduceat(frames, starts).astype(bool)
    below, above = used.argmax(1), used[:, ::-1].argmax(1)
    return -np.minimum(most, below), np.minimum(most, above)
