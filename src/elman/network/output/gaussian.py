"""Real values under a normal distribution of unit variance, whose NLL is half the squared error plus a constant."""

import math
from typing import final

from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.nn.functional import linear

from elman.network.output.choice import Conditional


@final
class Gaussian(Conditional):
    """log p(v) = -|v - z|^2 / 2 - P/2 log 2 pi, z = W context + b.

    Args:
        num_values: P.
        size: D.

    """

    def __init__(self, num_values: int, size: int) -> None:
        super().__init__()
        self.readout = nn.Linear(size, num_values)
        nn.init.zeros_(self.readout.bias)

    def mean(self, context: Tensor) -> Tensor:
        """The mean [..., P] given contexts [..., D]."""
        return linear(context, self.readout.weight, self.readout.bias)

    def log_prob(self, context: Float[Tensor, "N K D"], target: Shaped[Tensor, "N *P"]) -> Float[Tensor, "N K"]:
        """Log-density [N, K] of values [N, P] under contexts [N, K, D]."""
        distance = (target.unsqueeze(1) - self.mean(context)).square().sum(-1)
        return -0.5 * (distance + target.shape[-1] * math.log(2 * math.pi))
