"""Output activations: the g of p(y) = g(z_y) / sum_v g(z_v), given as log g.

Softmax takes g = exp. The rank of the matrix of log-probabilities, and so what a model can express, depends on
log g being non-linear (Kanai et al. 2018, section 3). Everything stays in the log domain: a normalised
log-probability is log g(z) - logsumexp log g(z), and nothing overflows or is cut off.
"""

import math
from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

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
