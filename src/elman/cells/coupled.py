"""LSTMs whose input gate depends on the forget gate, so that c stays within -1 and 1."""

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman.cells.cell import Cell, LayerState, Weights, hoist, step_of


def coupled(weights: Weights, drive: Tensor, state: LayerState) -> LayerState:
    """With i = 1 - f: c' = f c + (1 - f) g (Greff et al. 2017, CIFG); gates are stacked in the order f, g, o."""
    h, c = state
    f, g, o = (drive + linear(h, weights.hidden, weights.hidden_bias)).chunk(3, dim=-1)
    c = torch.lerp(g.tanh(), c, f.sigmoid())
    return o.sigmoid() * c.tanh(), c


def capped(weights: Weights, drive: Tensor, state: LayerState) -> LayerState:
    """With i of at most 1 - f: c' = f c + min(i, 1 - f) g (Melis et al. 2018, 2020); in the order i, f, g, o."""
    h, c = state
    i, f, g, o = (drive + linear(h, weights.hidden, weights.hidden_bias)).chunk(4, dim=-1)
    f = f.sigmoid()
    c = f * c + torch.minimum(i.sigmoid(), 1 - f) * g.tanh()
    return o.sigmoid() * c.tanh(), c


COUPLED_LSTM = Cell(
    gates=3,
    slots=2,
    step=step_of(coupled),
    sequence=hoist(coupled),
    name="lstm-coupled",
    candidate=1,
    keeps=((0, 1),),
)
CAPPED_LSTM = Cell(
    gates=4,
    slots=2,
    step=step_of(capped),
    sequence=hoist(capped),
    name="lstm-capped",
    candidate=2,
    keeps=((1, 1),),
)
