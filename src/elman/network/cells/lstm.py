"""Long short-term memory (Hochreiter & Schmidhuber 1997; forget gate: Gers et al. 2000).

Gates are stacked in the order i, f, g, o; without a forget gate i, g, o.
"""

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman.network.cells import fast_lstm as kernel
from elman.network.cells.cell import Cell, LayerState, Weights, hoist, step_of


def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
    """i, f, o = sigm(W x + U h + b), g = tanh(...), c' = f c + i g, h' = o tanh(c')."""
    h, c = state
    w = weights
    i, f, g, o = (linear(x, w.input, w.input_bias) + linear(h, w.hidden, w.hidden_bias)).chunk(4, dim=-1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def step_peephole(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
    """The gates also see the cell: i and f the old one, o the new one (Graves 2013, eqs 7-11)."""
    h, c = state
    w = weights
    assert w.peephole is not None
    i, f, g, o = (linear(x, w.input, w.input_bias) + linear(h, w.hidden, w.hidden_bias)).chunk(4, dim=-1)
    p_i, p_f, p_o = w.peephole
    new = (f + p_f * c).sigmoid() * c + (i + p_i * c).sigmoid() * g.tanh()
    return (o + p_o * new).sigmoid() * new.tanh(), new


def step_without_forget_gate(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
    """The form of 1997, f = 1: c' = c + i g."""
    h, c = state
    w = weights
    i, g, o = (linear(x, w.input, w.input_bias) + linear(h, w.hidden, w.hidden_bias)).chunk(3, dim=-1)
    c = c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


LSTM = Cell(gates=4, slots=2, step=step, sequence=kernel.lstm, name="lstm", candidate=2, keeps=((1, 1),))
PEEPHOLE_LSTM = Cell(gates=4, slots=2, step=step_peephole, name="lstm-peephole", candidate=2, keeps=((1, 1),))
LSTM_1997 = Cell(gates=3, slots=2, step=step_without_forget_gate, name="lstm-1997", candidate=1)


# FOLDED cells/coupled.py: LSTMs whose input gate depends on the forget gate, so that c stays within -1 and 1.
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
