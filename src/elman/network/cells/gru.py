"""The gated recurrent unit, in its two variants. Gates are stacked in the order r, z, n; z keeps the old state.

Some texts exchange z and 1 - z: the same network with W_z, U_z and b_z negated.
"""

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear

from elman import config
from elman.network.cells import fast_gru as kernel
from elman.network.cells.cell import Cell, LayerState, Weights


def step_reset_before(weights: Weights, x: Float[Tensor, "B I"], state: LayerState) -> LayerState:
    """Return h' for n = tanh(W_n x + U_n (r h)), h' = z h + (1 - z) n (Cho et al. 2014; thesis 2.29-2.32)."""
    (h,) = state
    size = h.shape[-1]
    from_x = linear(x, weights.input, weights.input_bias)
    hidden_bias = (None, None) if weights.hidden_bias is None else weights.hidden_bias.split((2 * size, size))
    gates = from_x[..., : 2 * size] + linear(h, weights.hidden[: 2 * size], hidden_bias[0])
    r, z = gates.sigmoid().chunk(2, dim=-1)
    n = (from_x[..., 2 * size :] + linear(r * h, weights.hidden[2 * size :], hidden_bias[1])).tanh()
    return (z * h + (1 - z) * n,)


def step_reset_after(weights: Weights, x: Float[Tensor, "B I"], state: LayerState) -> LayerState:
    """Return h' for n = tanh(W_n x + b + r (U_n h + b')), the form of the vendor kernels; h' = z h + (1 - z) n."""
    (h,) = state
    x_r, x_z, x_n = linear(x, weights.input, weights.input_bias).chunk(3, dim=-1)
    h_r, h_z, h_n = linear(h, weights.hidden, weights.hidden_bias).chunk(3, dim=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (x_n + r * h_n).tanh()
    return (z * h + (1 - z) * n,)


GRU_RESET_BEFORE = Cell(3, 1, step_reset_before, kernel.gru_reset_before, "gru-before", candidate=2, masks=None)
GRU_RESET_AFTER = Cell(3, 1, step_reset_after, kernel.gru_reset_after, "gru-after", candidate=2, masks=None)


def build(record: config.GRU) -> Cell:
    """The variant of a recipe."""
    return GRU_RESET_BEFORE if record.reset == "before" else GRU_RESET_AFTER
