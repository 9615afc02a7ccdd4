"""From symbols or frames to vectors."""

from abc import ABC, abstractmethod

from torch import Tensor, nn


class TokenEncoder(nn.Module, ABC):
    """Turns what is read at each step into a vector.

    Attributes:
        size: the width E of its vectors.

    """

    size: int

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Symbols [T, B], or frames of notes [T, B, P], to vectors [T, B, E]."""
