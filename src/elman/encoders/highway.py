"""A highway layer: what passes is chosen between itself and a function of itself (Srivastava et al. 2015)."""

import torch
from torch import Tensor, nn

from elman.kernels.linear import linear

CARRY = -2.0
"""Where the bias of the gate begins: most passes unchanged at first (Kim et al. 2016, section 4.1)."""


class Highway(nn.Module):
    """z = t * relu(W_H y + b_H) + (1 - t) * y,  t = sigm(W_T y + b_T).

    The memo that summarises the paper prints 1 - t * y for the second term.

    Args:
        size: E.

    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(2 * size, size))
        self.bias = nn.Parameter(torch.cat([torch.zeros(size), torch.full((size,), CARRY)]))

    def forward(self, y: Tensor) -> Tensor:
        """Vectors [n, E] to vectors [n, E]; W_H lies above W_T."""
        changed, gate = linear(y, self.weight, self.bias).chunk(2, dim=1)
        return torch.lerp(y, changed.relu(), gate.sigmoid())
