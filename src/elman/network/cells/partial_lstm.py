"""From Elman's network to the LSTM, one gate at a time (the survey's slides on gates); with all three it is the LSTM.

On the slides the first gate is h' = h * sigm(W_f (y + h + x)): the memory is scaled and never replaced, so a state that
begins at zero stays there. Here Elman's candidate tanh(W x + U y) is added to the scaled memory; with c for the
slides' h, the gates read x and y through matrices of their own, as those of the LSTM do.
"""

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear

from elman import config
from elman.network.cells.cell import Cell, LayerState, Weights, hoist, step_of
from elman.network.cells.lstm import LSTM


def forget_gate(weights: Weights, drive: Float[Tensor, "B GH"], state: LayerState) -> LayerState:
    """Rung 1: c' = f c + g, y' = tanh(c'); blocks f, g."""
    y, c = state
    f, g = (drive + linear(y, weights.hidden, weights.hidden_bias)).chunk(2, dim=-1)
    c = f.sigmoid() * c + g.tanh()
    return c.tanh(), c


def input_gate(weights: Weights, drive: Float[Tensor, "B GH"], state: LayerState) -> LayerState:
    """Rung 2: c' = f c + i g, y' = tanh(c'); blocks i, f, g. With an output gate it is the LSTM."""
    y, c = state
    i, f, g = (drive + linear(y, weights.hidden, weights.hidden_bias)).chunk(3, dim=-1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return c.tanh(), c


FORGET_RUNG = Cell(2, 2, step_of(forget_gate), hoist(forget_gate), "rung-forget", candidate=1, keeps=((0, 1),))
INPUT_RUNG = Cell(3, 2, step_of(input_gate), hoist(input_gate), "rung-input", candidate=2, keeps=((1, 1),))


def build(record: config.Ladder) -> Cell:
    """The cell of a recipe."""
    return {"forget": FORGET_RUNG, "input": INPUT_RUNG, "output": LSTM}[record.rung]
