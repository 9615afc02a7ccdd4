"""The ladder from Elman's network to the LSTM (the survey's slides on gates), rung by rung; the last rung is the LSTM.

On the slides the first gate is h' = h * sigm(W_f (y + h + x)): what is remembered is scaled, never replaced, so that a
state which begins at zero stays there. Here Elman's candidate tanh(W x + U y) is added to what the gate has kept; with
c for the slides' h, the gates see x and y by matrices of their own, as the LSTM's do.
"""

from torch import Tensor
from torch.nn.functional import linear

from elman.network.cells.cell import Cell, LayerState, Weights, hoist, step_of


def forget_gate(weights: Weights, drive: Tensor, state: LayerState) -> LayerState:
    """Rung 1: c' = f c + g, y' = tanh(c'); blocks f, g."""
    y, c = state
    f, g = (drive + linear(y, weights.hidden, weights.hidden_bias)).chunk(2, dim=-1)
    c = f.sigmoid() * c + g.tanh()
    return c.tanh(), c


def input_gate(weights: Weights, drive: Tensor, state: LayerState) -> LayerState:
    """Rung 2: c' = f c + i g, y' = tanh(c'); blocks i, f, g. With an output gate it is the LSTM."""
    y, c = state
    i, f, g = (drive + linear(y, weights.hidden, weights.hidden_bias)).chunk(3, dim=-1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return c.tanh(), c


FORGET_RUNG = Cell(
    gates=2,
    slots=2,
    step=step_of(forget_gate),
    sequence=hoist(forget_gate),
    name="rung-forget",
    candidate=1,
    keeps=((0, 1),),
)
INPUT_RUNG = Cell(
    gates=3,
    slots=2,
    step=step_of(input_gate),
    sequence=hoist(input_gate),
    name="rung-input",
    candidate=2,
    keeps=((1, 1),),
)
