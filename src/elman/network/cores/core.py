"""What every recurrent core gives: a state that begins, and a trace of its levels."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn

from elman.network.state import State


class Trace(NamedTuple):
    """What a core shows to the output layer and to the penalties, level 0 being the encoded input.

    Attributes:
        levels: the outputs [T, B, _] of the levels after dropout; contexts and AR read these.
        raw: the same before dropout; TAR reads the last.
        attention: where there is a source, the weights [T, B, S] of its positions.

    """

    levels: tuple[Tensor, ...]
    raw: tuple[Tensor, ...]
    attention: Tensor | None = None

    @property
    def top(self) -> Tensor:
        """The last level after dropout, [T, B, D]."""
        return self.levels[-1]


class RecurrentCore(nn.Module, ABC):
    """A recurrent network between the encoder and the output layer.

    Attributes:
        dims: the width of every level of its trace, the encoder's first.

    """

    dims: tuple[int, ...]

    @abstractmethod
    def begin(self, batch: int) -> State:
        """The state of `batch` sequences that have not begun."""

    @abstractmethod
    def forward(self, x: Tensor, state: State) -> tuple[Trace, State]:
        """Run over x [T, B, E] from `state`."""
