"""From Elman's network to the LSTM, one gate at a time (the survey's slides on gates); with all three it is the LSTM.

On the slides the first gate is h' = h * sigm(W_f (y + h + x)): the memory is scaled and never replaced, so a state that
begins at zero stays there. Here Elman's candidate tanh(W x + U y) is added to the scaled memory; with c for the
slides' h, the gates read x and y through matrices of their own, as those of the LSTM do.
"""

from jaxtyping import Float
from torch import Tensor

from elman import config
from elman.network.cells.cell import Cell, LayerState, Weights, hoist, of_sums, step_of
from elman.network.cells.lstm import LSTM


def forget_gate(weights: Weights, z: Float[Tensor, "B GH"], state: LayerState) -> LayerState:  # noqa: ARG001
    """Rung 1, given the sums z = W x + U y + b: c' = f c + g, y' = tanh(c'); blocks f, g."""
    f, g = z.chunk(2, dim=-1)
    c = f.sigmoid() * state[1] + g.tanh()
    return c.tanh(), c


def input_gate(weights: Weights, z: Float[Tensor, "B GH"], state: LayerState) -> LayerState:  # noqa: ARG001
    """Rung 2, given the sums: c' = f c + i g, y' = tanh(c'); blocks i, f, g. With an output gate it is the LSTM."""
    i, f, g = z.chunk(3, dim=-1)
    c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return c.tanh(), c


FORGET_RUNG = Cell(
    2, 2, step_of(of_sums(forget_gate)), hoist(of_sums(forget_gate)), "rung-forget", 1, ((0, 1),), gated=forget_gate
)
INPUT_RUNG = Cell(
    3, 2, step_of(of_sums(input_gate)), hoist(of_sums(input_gate)), "rung-input", 2, ((1, 1),), gated=input_gate
)


def build(record: config.Ladder) -> Cell:
    """The cell of a recipe."""
    return {"forget": FORGET_RUNG, "input": INPUT_RUNG, "output": LSTM}[record.rung]
