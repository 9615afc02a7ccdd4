"""What a target is conditioned on: a source read beforehand."""

from typing import NamedTuple

import torch
from torch import Tensor


class Source(NamedTuple):
    """Sources side by side, padded at the end.

    Attributes:
        symbols: ids of the source vocabulary [S, B].
        mask: which of them are there, bool [S, B]; the others are padding and have no part in anything.

    """

    symbols: Tensor
    mask: Tensor

    def to(self, device: torch.device, *, non_blocking: bool = False) -> "Source":
        """The same sources on another device."""
        return Source(*(part.to(device, non_blocking=non_blocking) for part in self))

    def columns(self, rows: slice) -> "Source":
        """A slice of the columns."""
        return Source(self.symbols[:, rows], self.mask[:, rows])
