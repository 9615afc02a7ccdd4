"""From symbols or frames to vectors."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from elman.network import dropout
from elman.network.kernels.matmul import linear


class TokenEncoder(nn.Module, ABC):
    """Turns what is read at each step into a vector.

    Attributes:
        size: the width E of its vectors.

    """

    size: int

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Symbols [T, B], or frames of notes [T, B, P], to vectors [T, B, E]."""


# FOLDED encoders/frames.py: Frames of notes times a matrix: the vector of a frame is the sum of those of its notes.
class Frames(TokenEncoder):
    """A linear map of frames, one step of a piano roll each.

    Args:
        num_pitches: P.
        size: E.
        dropout: rate on the vectors.
        locked: one dropout mask over time.
        scale: a constant factor on the vectors.
        bias: whether a vector b [E] is added before the scale.

    """

    def __init__(
        self,
        num_pitches: int,
        size: int,
        *,
        dropout: float = 0.0,
        locked: bool = True,
        scale: float = 1.0,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.size, self.rate, self.locked, self.scale = size, dropout, locked, scale
        self.weight = nn.Parameter(torch.empty(size, num_pitches))
        self.bias = nn.Parameter(torch.zeros(size)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Frames of zeros and ones [T, B, P] to vectors [T, B, E]."""
        vectors = linear(x.to(self.weight.dtype), self.weight, self.bias)
        if self.scale != 1.0:
            vectors = vectors * self.scale
        drop = dropout.locked if self.locked else dropout.elementwise
        return drop(vectors, self.rate if self.training else 0.0)


# FOLDED encoders/values.py: Real values, read as they are.
class Values(TokenEncoder):
    """Vectors [T, B, P] for themselves: nothing is learnt, and E = P."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        """The values."""
        return x
