"""Recurrent highway networks (Zilly, Srivastava, Koutnik & Schmidhuber 2017): several highway layers per step."""

from torch import Tensor
from torch.nn.functional import linear

from elman.config.record import Depth
from elman.network.cells.cell import Driven, LayerState, Weights
from elman.network.fast import highway


class Highway(Driven, frozen=True, tag="highway"):
    """s_l = h_l t_l + s_{l-1} c_l for l = 1..depth, the input entering at l = 1 only (eqs 6-9).

    h_l = tanh(R_H s + b), t_l = sigm(R_T s + b), and c_l = 1 - t_l (`coupled`) or sigm(R_C s + b). The recurrent blocks
    are stacked by l, then in the order h, t, c; the input has the blocks of l = 1.
    """

    depth: Depth = 5
    coupled: bool = True
    masks = "products"

    @property
    def input_gates(self) -> tuple[str, ...]:
        return tuple("ht" if self.coupled else "htc")

    @property
    def gates(self) -> tuple[str, ...]:
        return tuple(f"{gate}{level}" for level in range(self.depth) for gate in self.input_gates)

    @property
    def candidate(self) -> str:
        return "h0"

    @property
    def keeps(self) -> tuple[tuple[str, int], ...]:
        """The carry gates, or the transform gates of which they are the complements."""
        gate, sign = ("t", -1) if self.coupled else ("c", 1)
        return tuple((f"{gate}{level}", sign) for level in range(self.depth))

    def driven(self, w: Weights, drive: Tensor, state: LayerState) -> LayerState:
        (s,) = state
        blocks = len(self.input_gates)
        rows = blocks * s.shape[-1]
        biases = (None,) * self.depth if w.bias_hh is None else w.bias_hh.split(rows)
        for level, (recurrent, bias) in enumerate(zip(w.weight_hh.split(rows), biases, strict=True)):
            z = linear(s if w.mask is None else w.mask * s, recurrent, bias)
            h, t, *carry = (z if level else z + drive).chunk(blocks, dim=-1)
            t = t.sigmoid()
            s = h.tanh() * t + s * (carry[0].sigmoid() if carry else 1 - t)
        return (s,)

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        return highway.scan(w, xs, state, self.depth, self.coupled)
