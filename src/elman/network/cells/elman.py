"""The simple recurrent network (Elman 1990)."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import linear, softplus

from elman import config
from elman.network.cells.cell import Cell, LayerState, Weights

NONLINEARITIES: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    # log(1 + e^z), exact to float64; torch's own is linear from z = 20 on, where the two differ by 2e-9.
    "softplus": partial(softplus, threshold=50.0),
}


def build(record: config.Elman) -> Cell:
    """h_t = f(W_x x_t + W_h h_{t-1} + b), with f tanh, sigmoid, ReLU or softplus (Dugas et al. 2001).

    The cell with softplus has a name of its own: no stability certificate or constraint of Elman's network is for it.
    """
    f = NONLINEARITIES[record.nonlinearity]

    def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
        (h,) = state
        return (f(linear(x, weights.input, weights.input_bias) + linear(h, weights.hidden, weights.hidden_bias)),)

    name = "elman-softplus" if record.nonlinearity == "softplus" else "elman"
    return Cell(gates=1, slots=1, step=step, name=name, gated=lambda weights, z, state: (f(z),))  # noqa: ARG005
