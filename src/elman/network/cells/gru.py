"""The gated recurrent unit, in its two variants. Gates are stacked in the order r, z, n; z keeps the old state.

Some texts exchange z and 1 - z: the same network with W_z, U_z and b_z negated.
"""

from typing import Literal

from torch import Tensor
from torch.nn.functional import linear

from elman.network.cells.cell import Cell, LayerState, Weights
from elman.network.fast import gru


class GRU(Cell, frozen=True, tag="gru"):
    """h' = z h + (1 - z) n, with r, z = sigm(W x + U h + b).

    `reset` "before": n = tanh(W_n x + U_n (r h)) (Cho et al. 2014; thesis 2.29-2.32); "after", as in the vendor
    kernels: n = tanh(W_n x + b + r (U_n h + b')).
    """

    reset: Literal["before", "after"] = "after"
    masks = None
    gates = ("r", "z", "n")
    candidate = "n"

    @property
    def name(self) -> str:
        return f"gru-{self.reset}"

    def step(self, w: Weights, x: Tensor, state: LayerState) -> LayerState:
        return (_before if self.reset == "before" else _after)(w, x, state)

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        return gru.scan(w, xs, state, self.reset)


def _before(w: Weights, x: Tensor, state: LayerState) -> LayerState:
    (h,) = state
    size = h.shape[-1]
    from_x = linear(x, w.weight_ih, w.bias_ih)
    hidden_bias = (None, None) if w.bias_hh is None else w.bias_hh.split((2 * size, size))
    gates = from_x[..., : 2 * size] + linear(h, w.weight_hh[: 2 * size], hidden_bias[0])
    r, z = gates.sigmoid().chunk(2, dim=-1)
    n = (from_x[..., 2 * size :] + linear(r * h, w.weight_hh[2 * size :], hidden_bias[1])).tanh()
    return (z * h + (1 - z) * n,)


def _after(w: Weights, x: Tensor, state: LayerState) -> LayerState:
    (h,) = state
    x_r, x_z, x_n = linear(x, w.weight_ih, w.bias_ih).chunk(3, dim=-1)
    h_r, h_z, h_n = linear(h, w.weight_hh, w.bias_hh).chunk(3, dim=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (x_n + r * h_n).tanh()
    return (z * h + (1 - z) * n,)
