"""The chaos-free network: without input its state decays to 0, whatever the weights (Laurent & von Brecht 2017)."""

from torch import Tensor
from torch.nn.functional import linear

from elman.network.cells.cell import Driven, LayerState, Weights


class ChaosFree(Driven, frozen=True, tag="chaos-free"):
    """h' = f tanh(h) + i tanh(W_n x + b_n), for f, i = s(W x + U h + b) (eq. 1).

    Of one bias per gate n has none, as printed.
    """

    masks = None
    input_gates = ("f", "i", "n")
    gates = ("f", "i")
    keeps = (("f", 1),)

    def driven(self, w: Weights, drive: Tensor, state: LayerState) -> LayerState:
        (h,) = state
        size = h.shape[-1]
        f, i = (drive[..., : 2 * size] + linear(h, w.weight_hh, w.bias_hh)).sigmoid().chunk(2, dim=-1)
        return (f * h.tanh() + i * drive[..., 2 * size :].tanh(),)
