"""Windows of series: the positions are those of the windows of a stream of symbols, the values come from a table."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from elman.data.series.table import Array
from elman.data.windows import Batch, EvaluationWindows, Span, TrainingWindows


class SeriesTrainingWindows:
    """A series cut into B columns that are read side by side, as a text is; the remainder is dropped.

    The first step is predicted from `first`, the others from the step before.

    Args:
        values: float64 [n, P].
        first: [P].
        positions: the windows of 0 to n, where 0 stands for `first` and t for the t-th step.
    """

    def __init__(self, values: Array, first: Array, positions: TrainingWindows) -> None:
        self.positions, self.table = positions, torch.from_numpy(np.concatenate([first[None], values]))

    def spans(self, epoch: int) -> list[Span]:
        """The windows of an epoch, in order."""
        return self.positions.spans(epoch)

    def batch(self, span: Span) -> Batch:
        """The window of a span: values before and at each step, float64 [T, B, P]."""
        batch = self.positions.batch(span)
        return batch._replace(inputs=self.table[batch.inputs], targets=self.table[batch.targets])


class SeriesWindows:
    """A series read so that every step is a target exactly once.

    Args:
        values: float64 [n, P].
        first: [P], read before the first step.
        streams, length, warm_up: as for `EvaluationWindows`.
    """

    def __init__(self, values: Array, first: Array, *, streams: int = 1, length: int = 100, warm_up: int = 0) -> None:
        steps = np.arange(1, len(values) + 1)
        self.positions = EvaluationWindows(steps, 0, streams=streams, length=length, warm_up=warm_up)
        self.table = torch.from_numpy(np.concatenate([first[None], values]))

    @property
    def streams(self) -> int:
        """The number of columns."""
        return self.positions.streams

    @property
    def num_windows(self) -> int:
        """The number of windows."""
        return self.positions.num_windows

    def __iter__(self) -> Iterator[tuple[Batch, Tensor]]:
        """Windows, each with the position in the series of every target, [T, B] (-1: not counted)."""
        for batch, where in self.positions:
            yield batch._replace(inputs=self.table[batch.inputs], targets=self.table[batch.targets]), where
