"""From symbols to vectors."""

from abc import ABC, abstractmethod

from torch import Tensor, nn


class TokenEncoder(nn.Module, ABC):
    """Turns symbols into vectors.

    Attributes:
        size: the width E of its vectors.

    """

    size: int

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Symbols [T, B] to vectors [T, B, E]."""
