"""minLSTM (Feng et al. 2024): gates of the input alone, so that the state enters linearly.

    f, i = sigm(W x + b), f' = f / (f + i)        h' = f' h + (1 - f') g(W_h x + b_h)

with g as in minGRU. f' is formed from the difference of log i and log f, where f + i may be 0 in floating point.
"""

from torch import Tensor
from torch.nn.functional import softplus

from elman.network.cells.cell import Retention, Weights, block_of
from elman.network.cells.min_gru import LinearState, g


class MinLSTM(LinearState, frozen=True, tag="min-lstm"):
    """h' = f' h + (1 - f') g(W_h x + b_h)."""

    input_gates = ("f", "i", "h")
    candidate = "h"
    keeps = (("f", 1),)

    def factors(self, sums: Tensor) -> tuple[Tensor, Tensor]:
        """F' and (1 - f') g(v)."""
        f, i, v = sums.chunk(3, dim=-1)
        odds = softplus(-f) - softplus(-i)  # log i - log f
        return (-odds).sigmoid(), odds.sigmoid() * g(v)

    def retention(self, w: Weights) -> Retention:

        def factor(low: Tensor, high: Tensor) -> Tensor:
            f, i = high.chunk(2)[0], low.chunk(2)[1]
            return (softplus(-i) - softplus(-f)).sigmoid()

        return Retention((block_of(w, 0, 2 * len(w.weight_ih) // 3),), factor)
