"""The minimal gated unit, a GRU whose one gate both resets and updates (Zhou, Wu, Zhang & Zhou 2016)."""

from torch import Tensor
from torch.nn.functional import linear

from elman.network.cells.cell import Driven, LayerState, Weights


class MinimalGated(Driven, frozen=True, tag="minimal-gated"):
    """h' = (1 - f) h + f n, for f = s(W_f x + U_f h) and n = tanh(W_n x + U_n (f h))."""

    masks = None
    gates = ("f", "n")
    candidate = "n"
    keeps = (("f", -1),)

    def driven(self, w: Weights, drive: Tensor, state: LayerState) -> LayerState:
        (h,) = state
        hidden_f, hidden_n = w.weight_hh.chunk(2)
        bias_f, bias_n = (None, None) if w.bias_hh is None else w.bias_hh.chunk(2)
        x_f, x_n = drive.chunk(2, dim=-1)
        f = (x_f + linear(h, hidden_f, bias_f)).sigmoid()
        n = (x_n + linear(f * h, hidden_n, bias_n)).tanh()
        return ((1 - f) * h + f * n,)
