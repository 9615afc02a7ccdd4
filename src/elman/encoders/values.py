"""Real values, read as they are."""

from torch import Tensor

from elman.encoders.encoder import TokenEncoder


class Values(TokenEncoder):
    """Vectors [T, B, P] for themselves: nothing is learnt, and E = P."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        """The values."""
        return x
