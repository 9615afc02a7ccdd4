"""The simple recurrent network (Elman 1990)."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import softplus

from elman.config.record import Nonlinearity
from elman.network.cells.cell import Gated, LayerState, Weights
from elman.network.fast import policy

NONLINEARITIES: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    # log(1 + e^z), exact to float64; torch's own is linear from z = 20 on, where the two differ by 2e-9.
    "softplus": partial(softplus, threshold=50.0),
}


class Elman(Gated, frozen=True, tag="elman"):
    """h_t = f(W_x x_t + W_h h_{t-1} + b), with f tanh, sigmoid, ReLU or softplus (Dugas et al. 2001).

    With softplus it has a name of its own: no stability certificate or constraint of Elman's network is for it.
    """

    nonlinearity: Nonlinearity = "tanh"
    gates = ("n",)
    candidate = "n"

    @property
    def name(self) -> str:
        return "elman-softplus" if self.nonlinearity == "softplus" else "elman"

    def gated(self, w: Weights, z: Tensor, state: LayerState) -> LayerState:
        return (NONLINEARITIES[self.nonlinearity](z),)

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        kernel = policy.persistent(xs)
        found = None if kernel is None else kernel.scan(self.nonlinearity, w, xs, state)
        return found or super().scan(w, xs, state)
