"""The LSTM with a part left out, coupled or added (Greff, Srivastava, Koutnik, Steunebrink & Schmidhuber 2017).

All begin with the LSTM with peepholes, their "vanilla" LSTM, with g = tanh(W_g x + U_g h + b_g):

    i = s(W_i x + U_i h + p_i c + b_i)      f = s(W_f x + U_f h + p_f c + b_f)
    c' = f c + i g                          o = s(W_o x + U_o h + p_o c' + b_o)          h' = o tanh(c')

That one is `LSTM(peepholes=True)`, and their variant NP, without peepholes, is `LSTM()`.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman.network.cells.cell import Array, Gated, LayerState, Shape, Weights

Variant = Literal["nig", "nfg", "nog", "niaf", "noaf", "cifg", "fgr"]

LACKING = {"nig": "i", "nfg": "f", "nog": "o", "cifg": "i"}


class LSTMVariant(Gated, frozen=True, tag="lstm-variant"):
    """One change of the equations above, by the paper's abbreviation (its section 3).

    nig: i = 1. nfg: f = 1. nog: o = 1. niaf: g = W_g x + U_g h + b_g. noaf: h' = o c'. cifg: i = 1 - f (the
    paper has f = 1 - i, the same with other signs). fgr: the sums of i, f and o also have R [i; f; o] of the step
    before, with R = `weight_gates` [3H, 3H]. `peephole` holds p of the gates in the order i, f, o.
    """

    variant: Variant = "cifg"
    candidate = "g"

    @property
    def name(self) -> str:
        return f"lstm-{self.variant}"

    @property
    def gates(self) -> tuple[str, ...]:
        """i, f, g, o, without the one that a variant lacks."""
        return tuple(gate for gate in "ifgo" if gate != LACKING.get(self.variant))

    @property
    def keeps(self) -> tuple[tuple[str, int], ...]:
        return () if self.variant == "nfg" else (("f", 1),)

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        found = {"peephole": Array((len(self.gates) - 1, size), "bias")}
        if self.variant == "fgr":
            found["weight_gates"] = Array((3 * size, 3 * size), recurrent=True)
        return found

    def shapes(self, inputs: int, size: int) -> tuple[Shape, ...]:
        """H and c; with fgr also i, f and o."""
        return ((size,),) * (5 if self.variant == "fgr" else 2)

    def gated(self, w: Weights, z: Tensor, state: LayerState) -> LayerState:
        c, before = state[1], state[2:]
        sums = dict(zip(self.gates, z.chunk(len(self.gates), dim=-1), strict=True))
        p = dict(zip((gate for gate in self.gates if gate != "g"), w.peephole, strict=True))
        if before:
            for gate, more in zip(
                "ifo", linear(torch.cat(before, dim=-1), w.weight_gates).chunk(3, dim=-1), strict=True
            ):
                sums[gate] = sums[gate] + more

        def opened(gate: str, cell: Tensor) -> Tensor:
            return (sums[gate] + p[gate] * cell).sigmoid() if gate in sums else torch.ones_like(cell)

        f = opened("f", c)
        i = 1 - f if self.variant == "cifg" else opened("i", c)
        c = f * c + i * (sums["g"] if self.variant == "niaf" else sums["g"].tanh())
        o = opened("o", c)
        h = o * (c if self.variant == "noaf" else c.tanh())
        return (h, c, i, f, o) if before else (h, c)
