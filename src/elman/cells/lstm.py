"""Long short-term memory (Hochreiter & Schmidhuber 1997; forget gate: Gers et al. 2000).

Gates are stacked in the order i, f, g, o; without a forget gate i, g, o.
"""

from torch import Tensor
from torch.nn.functional import linear

from elman.cells.cell import Cell, LayerState, Weights
from elman.kernels import lstm as kernel


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
