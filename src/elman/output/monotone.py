"""A learned increasing function of the logits, before the output activation."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, softplus

from elman.output.activation import LOG_G
from elman.output.choice import Choice, chosen, normalised


class Monotone(Choice):
    """log p(y) = log g(f(z_y)) - logsumexp_v log g(f(z_v)), z = W context + b (Ganea et al. 2019).

    f is piecewise linear and increasing (PLIF): equal pieces on [-range, range] with a slope of their own each,
    softplus of a parameter; the first and the last piece go on for ever. f(z) = z at the beginning, so that training
    starts from the plain activation.

    Args:
        weight: W [V, D]; give an encoder's own parameter to tie them.
        activation: a key of `LOG_G`.
        pieces: the number of slopes.
        reach: where the last piece begins to be the last, `range` of the recipe.
        bias: whether z has one.

    """

    def __init__(
        self,
        weight: nn.Parameter,
        activation: str = "softmax",
        *,
        pieces: int = 1000,
        reach: float = 20.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.weight, self.activation, self.reach = weight, activation, reach
        self.bias = nn.Parameter(torch.zeros(len(weight))) if bias else None
        self.raw_slope = nn.Parameter(torch.full((pieces,), math.log(math.e - 1)))

    def bend(self, z: Tensor) -> Tensor:
        """The learned function, elementwise."""
        slope = softplus(self.raw_slope)
        width = 2 * self.reach / len(slope)
        height = slope.cumsum(0) * width - slope * width  # of f above f(-range), where each piece begins
        with torch.no_grad():
            piece = ((z + self.reach) / width).floor().clamp_(0, len(slope) - 1)
        at = piece.long()
        beyond = z - (piece * width - self.reach)
        return (height - self.reach)[at] + slope[at] * beyond

    def log_probs(self, context: Tensor) -> Tensor:
        """Log-probabilities [N, K, V]."""
        return normalised(self._scores(context))

    def log_prob(self, context: Tensor, target: Tensor) -> Tensor:
        """Log-probability of the target, [N, K]."""
        scores = self._scores(context)
        return chosen(scores, target) - scores.logsumexp(-1)

    def multiply_adds(self, frequency: Tensor) -> float:  # noqa: ARG002
        """V D, whatever the target."""
        return float(self.weight.numel())

    def _scores(self, context: Tensor) -> Tensor:
        return LOG_G[self.activation](self.bend(linear(context, self.weight, self.bias)))
