"""Output activations: the g of p(y) = g(z_y) / sum_v g(z_v), as log g.

Softmax takes g = exp. The rank of the matrix of log-probabilities, and so what a model can express, depends on log g
being non-linear (Kanai et al. 2018, section 3). All computations are in the log domain: a normalised log-probability is
log g(z) - logsumexp log g(z), and nothing overflows or is cut off. `shares` and `log_probs` do so in the fewest passes
over a large matrix z [R, V], which they overwrite.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from elman import config
from elman.errors import UserError

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


def _fast_log_sigmoid(z: Tensor) -> Tensor:
    return softplus(z, beta=-1.0, threshold=40.0)  # four times faster than logsigmoid, and as exact


class Shares(NamedTuple):
    """Probabilities p = amounts / total [R, V], and slope = d log g / d z [R, V]; None stands for one."""

    amounts: Tensor
    total: Tensor | None
    slope: Tensor | None


def _sigsoftmax_shares(z: Tensor) -> Shares:
    """As `shares`, in half the time; the total of a row far below zero underflows."""
    sigmoid = z.sigmoid()
    amounts = torch.softmax(z, dim=-1, out=z).mul_(sigmoid)
    total = amounts.sum(dim=1, keepdim=True)
    return Shares(amounts, total, torch.add(z.new_tensor(2.0), sigmoid, alpha=-1, out=sigmoid))


Elementwise: TypeAlias = Callable[[Tensor], Tensor]


class Activation(NamedTuple):
    """log g(z), elementwise and differentiable; `overwriting`, the same not differentiable, where z may be overwritten.

    `slope` is d log g / d z, which the fused kernels form their gradients with (1: it is one everywhere); `monotone`:
    log g never falls; `shares` is a faster `shares`, whose total may underflow.
    """

    log_g: Elementwise
    overwriting: Elementwise
    slope: Elementwise | Literal[1]
    monotone: bool
    shares: Callable[[Tensor], Shares] | None = None


def tried(activation: object, what: str) -> Activation:
    """An activation of a plug-in; raises UserError where it is none, or its log g is not finite or elementwise."""
    if not isinstance(activation, Activation):
        raise UserError(f"{what}: {activation!r:.60} is not an elman.network.output.activation.Activation")
    z = torch.linspace(-30, 30, 121)
    value = activation.log_g(z)
    if not isinstance(value, Tensor) or value.shape != z.shape:
        raise UserError(f"{what}: log g must return a tensor of the shape that it is given")
    if not bool(value.isfinite().all()):
        raise UserError(
            f"{what}: log g is not finite at z = {z[~value.isfinite()][0].item():g}; no probability is zero"
        )
    return activation


def _spherical(z: Tensor) -> Tensor:
    return _log_square(z, SPHERICAL_EPSILON)


def _taylor(z: Tensor) -> Tensor:
    return _log_square(z + 1, 1.0) - math.log(2)


ACTIVATIONS: dict[str, Activation] = {
    "softmax": Activation(lambda z: z, lambda z: z, 1, monotone=True),
    "sigsoftmax": Activation(
        lambda z: z + logsigmoid(z),
        lambda z: z.add_(_fast_log_sigmoid(z)),
        lambda z: z.neg().sigmoid_().add_(1),
        monotone=True,
        shares=_sigsoftmax_shares,
    ),
    "sigmoid": Activation(logsigmoid, _fast_log_sigmoid, lambda z: z.neg().sigmoid_(), monotone=True),
    "softplus": Activation(
        _log_softplus, _log_softplus, lambda z: _fast_log_sigmoid(z).sub_(_log_softplus(z)).exp_(), monotone=True
    ),
    "relu": Activation(
        lambda z: (z.relu() + RELU_EPSILON).log(),
        lambda z: z.clamp_(min=0).add_(RELU_EPSILON).log_(),
        lambda z: z.gt(0) / z.clamp(min=0).add_(RELU_EPSILON),
        monotone=True,
    ),
    "spherical": Activation(
        _spherical, _spherical, lambda z: 2 * z / z.square().add_(SPHERICAL_EPSILON), monotone=False
    ),
    "taylor": Activation(_taylor, _taylor, lambda z: 2 * (z + 1) / (z + 1).square_().add_(1), monotone=False),
}
"""The first five after Kanai et al. 2018, section 3, and eq. 4.16 of the thesis; g = z^2 + epsilon and
g = 1 + z + z^2 / 2 = ((z + 1)^2 + 1) / 2 after de Brebisson & Vincent 2016."""

UNDERFLOW = 1e-30
"""Below this probability its logarithm has lost digits, and is computed again in the log domain."""

SAFE_TOTAL = 1e-20
"""A row of `Shares` with a smaller total has lost digits to underflow."""


def log_g(z: Tensor, activation: config.Activation) -> Tensor:
    """Return log g(z), elementwise and differentiable."""
    return ACTIVATIONS[activation].log_g(z)


def log_probs(z: Tensor, activation: config.Activation) -> Tensor:
    """Return log g(z) - logsumexp log g(z), [R, V]; z is overwritten."""
    return ACTIVATIONS[activation].overwriting(z).log_softmax(dim=-1)


REACH = 100.0
"""Arguments that `inverse` finds are above -100, and at most 100 above the largest g, as all do where g rises."""


def inverse(score: Tensor, activation: config.Activation) -> Tensor:
    """Return z with log g(z) = score, elementwise, by bisection; not differentiable.

    Raises UserError where log g is not monotone, or does not reach a score within `REACH`.
    """
    low, high = torch.full_like(score, -REACH), torch.full_like(score, REACH) + score.max().exp()
    for _ in range(64):
        middle = (low + high) / 2
        below = log_g(middle, activation) < score
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    if not ACTIVATIONS[activation].monotone or not torch.allclose(log_g(high, activation), score, atol=1e-3):
        raise UserError(
            f'model.initialisation.output_bias = "unigram": no bias gives a word its frequency under the activation'
            f' {activation}; set it to "zeros"'
        )
    return high


def slope(z: Tensor, activation: config.Activation) -> Tensor | None:
    """Return d log g / d z [R, V]; None stands for one."""
    found = ACTIVATIONS[activation].slope
    return None if found == 1 else found(z)


def shares(z: Tensor, activation: config.Activation, *, safe: bool = False) -> Shares:
    """Return the normalised g(z) with its slope, exact in every row if `safe`; z is overwritten."""
    record = ACTIVATIONS[activation]
    if record.shares is not None and not safe:
        return record.shares(z)
    along = slope(z, activation)
    score = record.overwriting(z)
    return Shares(torch.softmax(score, dim=-1, out=score), None, along)


def log_of(p: Tensor, again: Callable[[Tensor], Tensor]) -> Tensor:
    """The logarithm of probabilities p [R]; `again` computes it for the rows [n] with less than `UNDERFLOW`."""
    log_prob = p.log()
    rare = (p < UNDERFLOW).nonzero().squeeze(1)
    if len(rare):
        log_prob[rare] = again(rare)
    return log_prob
