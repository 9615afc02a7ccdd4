"""The minimal gated unit, a GRU whose one gate both resets and updates (Zhou, Wu, Zhang & Zhou 2016)."""

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear

from elman.config.cells import MinimalGated
from elman.network.cells.cell import Cell, LayerState, Weights


def step(weights: Weights, x: Float[Tensor, "B I"], state: LayerState) -> LayerState:
    """Return h' = (1 - f) h + f n, for f = s(W_f x + U_f h) and n = tanh(W_n x + U_n (f h))."""
    (h,) = state
    hidden_f, hidden_n = weights.hidden.chunk(2)
    bias_f, bias_n = (None, None) if weights.hidden_bias is None else weights.hidden_bias.chunk(2)
    x_f, x_n = linear(x, weights.input, weights.input_bias).chunk(2, dim=-1)
    f = (x_f + linear(h, hidden_f, bias_f)).sigmoid()
    n = (x_n + linear(f * h, hidden_n, bias_n)).tanh()
    return ((1 - f) * h + f * n,)


MINIMAL_GATED = Cell(2, 1, step, name="minimal-gated", candidate=1, keeps=((0, -1),), masks=None)


def build(_: MinimalGated) -> Cell:
    """The only form."""
    return MINIMAL_GATED
