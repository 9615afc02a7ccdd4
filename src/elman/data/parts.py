"""A part of an evaluation, which one of several processes computes."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from torch import Tensor

from elman.data.batches import Batch
from elman.data.windows import PositionedWindows

Item = TypeVar("Item")


@dataclasses.dataclass(frozen=True, order=True)
class Part:
    """Part `index` of `count`; which columns, batches or sentences it has depends on these two numbers alone."""

    index: int = 0
    count: int = 1

    def columns(self, total: int) -> slice:
        """Its share of `total` columns, which are neighbours; may be empty."""
        return slice(self.index * total // self.count, (self.index + 1) * total // self.count)

    def of(self, items: Sequence[Item]) -> Sequence[Item]:
        """Every `count`-th of the items."""
        return items[self.index :: self.count]


WHOLE = Part()


class Summed(Protocol):
    """The sum of negative log-likelihoods (nats) over `count` targets."""

    @property
    def nll_sum(self) -> float: ...
    @property
    def count(self) -> int: ...


class ColumnsOf:
    """The windows of an evaluation, of which a part of the columns is read; none where there are no columns."""

    def __init__(self, windows: PositionedWindows, part: Part) -> None:
        self.windows, self.columns = windows, part.columns(windows.streams)
        self.streams = self.columns.stop - self.columns.start
        self.num_windows = windows.num_windows if self.streams else 0

    def __iter__(self) -> Iterator[tuple[Batch, Tensor]]:
        for batch, positions in self.windows if self.streams else ():
            yield batch.columns(self.columns), positions[:, self.columns]
