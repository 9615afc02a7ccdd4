"""The simple recurrent network (Elman 1990)."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman import config
from elman.network.cells.cell import Cell, LayerState, Weights

NONLINEARITIES: dict[str, Callable[[Tensor], Tensor]] = {f: getattr(torch, f) for f in ("tanh", "sigmoid", "relu")}


def build(record: config.Elman) -> Cell:
    """h_t = f(W_x x_t + W_h h_{t-1} + b), with f tanh, sigmoid or ReLU."""
    f = NONLINEARITIES[record.nonlinearity]

    def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
        (h,) = state
        return (f(linear(x, weights.input, weights.input_bias) + linear(h, weights.hidden, weights.hidden_bias)),)

    return Cell(gates=1, slots=1, step=step, name="elman")
