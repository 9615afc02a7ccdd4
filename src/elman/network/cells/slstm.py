"""sLSTM of the extended LSTM (Beck et al. 2024), with the state m that stabilises its exponential gates.

    m' = max(log f + m, i)          f' = exp(log f + m - m')          i' = exp(i - m')       (eqs 15-17)
    c' = f' c + i' tanh(z),  n' = f' n + i',  h' = sigm(o) c' / n'                           (eqs 8-14)

with the sums W x + R h + b of each gate, R in blocks, one per head. m is a running maximum of the logarithms of the
gates, and no output depends on it in exact arithmetic. At the first step, where n = 0, m' = i.
"""

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from elman.config.record import Positive
from elman.network.cells.cell import Array, Driven, LayerState, Shape, Weights
from elman.network.cells.heads import block_diagonal, width_of
from elman.network.fast import slstm


class SLSTM(Driven, frozen=True, tag="slstm"):
    """The cell above; `weight_hh` [4H, d] holds the blocks of R of each gate, i, f, z, o, one below the other."""

    heads: Positive = 4
    forget: Literal["sigmoid", "exponential"] = "sigmoid"
    gates = ("i", "f", "z", "o")
    candidate = "z"
    keeps = (("f", 1),)
    has_matrices = False

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        """R; raises UserError where the heads do not divide the layer."""
        return {"weight_hh": Array((4 * size, width_of(size, self.heads, "slstm")), _within_root, recurrent=True)}

    def shapes(self, inputs: int, size: int) -> tuple[Shape, ...]:
        """h, c, n and m."""
        return ((size,),) * 4

    def driven(self, w: Weights, drive: Tensor, state: LayerState) -> LayerState:
        h, c, n, m = state
        blocks = w.weight_hh.view(4, self.heads, -1, w.weight_hh.shape[1])
        recurrent = torch.cat([block_diagonal(h, block) for block in blocks], dim=-1)
        i, f, z, o = (drive + (recurrent if w.bias_hh is None else recurrent + w.bias_hh)).chunk(4, dim=-1)
        kept = torch.where(n == 0, i, (f if self.forget == "exponential" else logsigmoid(f)) + m)
        m = torch.maximum(kept, i)
        keep, enter = (kept - m).exp(), (i - m).exp()
        c, n = keep * c + enter * z.tanh(), keep * n + enter
        return o.sigmoid() * c / n, c, n, m

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        return slstm.scan(w, xs, state, self.heads, self.forget == "exponential")


def _within_root(hidden: Tensor) -> None:
    bound = 1 / math.sqrt(hidden.shape[1])
    hidden.uniform_(-bound, bound)
