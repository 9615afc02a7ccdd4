"""Output activations: the g of p(y) = g(z_y) / sum_v g(z_v), given as log g.

Softmax takes g = exp. The rank of the matrix of log-probabilities, and so what a model can express, depends on
log g being non-linear (Kanai et al. 2018, section 3). Everything stays in the log domain: a normalised
log-probability is log g(z) - logsumexp log g(z), and nothing overflows or is cut off.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, logsigmoid, softplus

from elman.network.output.choice import Choice, chosen, normalised

Activation: TypeAlias = Literal["softmax", "sigsoftmax", "sigmoid", "softplus", "relu", "spherical", "taylor"]

RELU_EPSILON = 1e-8
"""The term that keeps the ReLU output function positive (thesis 4.49, with each term normalised)."""

SPHERICAL_EPSILON = 1e-4
"""The term that keeps the spherical softmax positive; it bounds the slope of log g by 100."""


def _log_softplus(z: Tensor) -> Tensor:
    # log softplus(z) -> z as z -> -inf, where softplus itself underflows to zero; the gradient goes to 1 there.
    safe = z.clamp(min=-15.0)
    return torch.where(z < -15.0, z - 0.5 * z.clamp(max=-15.0).exp(), softplus(safe).log())


def _log_square(z: Tensor, floor: float) -> Tensor:
    # log(z^2 + floor) without a square, which overflows before its logarithm does.
    return 2 * torch.hypot(z, z.new_tensor(math.sqrt(floor))).log()


LOG_G: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda z: z,
    "sigsoftmax": lambda z: z + logsigmoid(z),
    "sigmoid": logsigmoid,
    "softplus": _log_softplus,
    "relu": lambda z: (z.relu() + RELU_EPSILON).log(),
    "spherical": lambda z: _log_square(z, SPHERICAL_EPSILON),
    "taylor": lambda z: _log_square(z + 1, 1.0) - math.log(2),
}
"""log g(z), elementwise, for each activation: the first five after Kanai et al. 2018, section 3, and eq. 4.16 of the
thesis; g = z^2 + epsilon and g = 1 + z + z^2 / 2 = ((z + 1)^2 + 1) / 2 after de Brebisson & Vincent 2016."""

assert set(LOG_G) == set(get_args(Activation))


# FOLDED kernels/score.py: Scores log g(z), their slopes and softmax, in the fewest passes over a large matrix z [R, V].
SAFE_TOTAL = 1e-20
"""A row of `Shares` with a smaller total has lost digits to underflow."""


class Shares(NamedTuple):
    """Probabilities p = amounts / total [R, V], and slope = d log g / d z [R, V]; None stands for one."""

    amounts: Tensor
    total: Tensor | None
    slope: Tensor | None


def log_probs(z: Tensor, activation: str) -> Tensor:
    """Return log g(z) - logsumexp log g(z), [R, V]; z is overwritten."""
    return SCORE[activation](z).log_softmax(dim=-1)


def shares(z: Tensor, activation: str) -> Shares:
    """Return the normalised g(z) with its slope; z is overwritten."""
    slope = SLOPE[activation](z) if activation in SLOPE else None
    score = SCORE[activation](z)
    return Shares(torch.softmax(score, dim=-1, out=score), None, slope)


def sigsoftmax_shares(z: Tensor) -> Shares:
    """As `shares` for sigsoftmax, in half the time; the total of a row far below zero underflows."""
    sigmoid = z.sigmoid()
    amounts = torch.softmax(z, dim=-1, out=z).mul_(sigmoid)
    total = amounts.sum(dim=1, keepdim=True)
    return Shares(amounts, total, torch.add(z.new_tensor(2.0), sigmoid, alpha=-1, out=sigmoid))


def _log_sigmoid(z: Tensor) -> Tensor:
    return softplus(z, beta=-1.0, threshold=40.0)  # four times faster than logsigmoid, and as exact


SCORE: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda z: z,
    "sigsoftmax": lambda z: z.add_(_log_sigmoid(z)),
    "sigmoid": _log_sigmoid,
    "softplus": LOG_G["softplus"],
    "relu": lambda z: z.clamp_(min=0).add_(RELU_EPSILON).log_(),
    "spherical": LOG_G["spherical"],
    "taylor": LOG_G["taylor"],
}
"""The functions of `LOG_G`; z is overwritten."""

SLOPE: dict[str, Callable[[Tensor], Tensor]] = {
    "sigsoftmax": lambda z: z.neg().sigmoid_().add_(1),
    "sigmoid": lambda z: z.neg().sigmoid_(),
    "softplus": lambda z: _log_sigmoid(z).sub_(LOG_G["softplus"](z)).exp_(),
    "relu": lambda z: z.gt(0) / z.clamp(min=0).add_(RELU_EPSILON),
    "spherical": lambda z: 2 * z / z.square().add_(SPHERICAL_EPSILON),
    "taylor": lambda z: 2 * (z + 1) / (z + 1).square_().add_(1),
}
"""Their derivatives; for softmax it is one."""


# FOLDED output/monotone.py: A learned increasing function of the logits, before the output activation.
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
