"""Long short-term memory (Hochreiter & Schmidhuber 1997; forget gate: Gers et al. 2000).

Gates are stacked in the order i, f, g, o; without a forget gate i, g, o; with the coupled input gate f, g, o. In the
coupled and the capped form the input gate depends on the forget gate, which keeps c between -1 and 1.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear

from elman import config
from elman.errors import UserError
from elman.network.cells import fast_lstm as kernel
from elman.network.cells.cell import Cell, LayerState, Weights, hoist, of_sums, step_of


def step(weights: Weights, x: Float[Tensor, "B I"], state: LayerState) -> LayerState:
    """i, f, o = sigm(W x + U h + b), g = tanh(...), c' = f c + i g, h' = o tanh(c')."""
    return gated(weights, _sums(weights, x, state), state)


def gated(weights: Weights, z: Float[Tensor, "B GH"], state: LayerState) -> LayerState:  # noqa: ARG001
    """As `step`, given the sums z = W x + U h + b."""
    i, f, g, o = z.chunk(4, dim=-1)
    c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def step_peephole(weights: Weights, x: Float[Tensor, "B I"], state: LayerState) -> LayerState:
    """The gates also see the cell: i and f the old one, o the new one (Graves 2013, eqs 7-11)."""
    return gated_peephole(weights, _sums(weights, x, state), state)


def gated_peephole(weights: Weights, z: Float[Tensor, "B GH"], state: LayerState) -> LayerState:
    """As `step_peephole`, given the sums."""
    c = state[1]
    assert weights.peephole is not None
    i, f, g, o = z.chunk(4, dim=-1)
    p_i, p_f, p_o = weights.peephole
    new = (f + p_f * c).sigmoid() * c + (i + p_i * c).sigmoid() * g.tanh()
    return (o + p_o * new).sigmoid() * new.tanh(), new


def step_without_forget_gate(weights: Weights, x: Float[Tensor, "B I"], state: LayerState) -> LayerState:
    """The form of 1997, f = 1: c' = c + i g."""
    return gated_without_forget_gate(weights, _sums(weights, x, state), state)


def gated_without_forget_gate(weights: Weights, z: Float[Tensor, "B GH"], state: LayerState) -> LayerState:  # noqa: ARG001
    """As `step_without_forget_gate`, given the sums."""
    i, g, o = z.chunk(3, dim=-1)
    c = state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _sums(weights: Weights, x: Tensor, state: LayerState) -> Tensor:
    w = weights
    return linear(x, w.input, w.input_bias) + linear(state[0], w.hidden, w.hidden_bias)


def coupled(weights: Weights, z: Float[Tensor, "B GH"], state: LayerState) -> LayerState:  # noqa: ARG001
    """Return the state for i = 1 - f, given the sums: c' = f c + (1 - f) g (Greff et al. 2017, CIFG)."""
    f, g, o = z.chunk(3, dim=-1)
    c = torch.lerp(g.tanh(), state[1], f.sigmoid())
    return o.sigmoid() * c.tanh(), c


def capped(weights: Weights, z: Float[Tensor, "B GH"], state: LayerState) -> LayerState:  # noqa: ARG001
    """Return the state for i <= 1 - f, given the sums: c' = f c + min(i, 1 - f) g (Melis et al. 2018, 2020)."""
    i, f, g, o = z.chunk(4, dim=-1)
    f = f.sigmoid()
    c = f * state[1] + torch.minimum(i.sigmoid(), 1 - f) * g.tanh()
    return o.sigmoid() * c.tanh(), c


LSTM = Cell(4, 2, step, kernel.lstm, "lstm", candidate=2, keeps=((1, 1),), gated=gated)
PEEPHOLE_LSTM = Cell(
    4, 2, step_peephole, name="lstm-peephole", candidate=2, keeps=((1, 1),), peepholes=True, gated=gated_peephole
)
LSTM_1997 = Cell(3, 2, step_without_forget_gate, name="lstm-1997", candidate=1, gated=gated_without_forget_gate)
COUPLED_LSTM = Cell(
    3, 2, step_of(of_sums(coupled)), hoist(of_sums(coupled)), "lstm-coupled", 1, keeps=((0, 1),), gated=coupled
)
CAPPED_LSTM = Cell(
    4, 2, step_of(of_sums(capped)), hoist(of_sums(capped)), "lstm-capped", 2, keeps=((1, 1),), gated=capped
)


def build(record: config.LSTM) -> Cell:
    """The variant of a recipe; raises UserError where peepholes or the input gate do not go with the other gates."""
    if not record.forget_gate and record.peepholes:
        raise UserError("model.core.cell: peepholes need the forget gate; set forget_gate = true")
    if record.input_gate != "free":
        if record.peepholes or not record.forget_gate:
            raise UserError(
                f'model.core.cell: input_gate = "{record.input_gate}" needs a forget gate and no peepholes; set'
                ' input_gate = "free", or forget_gate = true and peepholes = false'
            )
        return COUPLED_LSTM if record.input_gate == "coupled" else CAPPED_LSTM
    if record.peepholes:
        return PEEPHOLE_LSTM
    return LSTM if record.forget_gate else LSTM_1997
