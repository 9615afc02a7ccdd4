"""The three recurrences that a search by mutation found (Jozefowicz, Zaremba & Sutskever 2015), relatives of the GRU.

With h' = z n + (1 - z) h (section 3.3; z lets the new state in):

    MUT1   z = s(W_z x + b_z)                    r = s(W_r x + U_r h + b_r)      n = tanh(U_n (r h) + tanh(x) + b_n)
    MUT2   z = s(W_z x + U_z h + b_z)            r = s(x + U_r h + b_r)          n = tanh(U_n (r h) + W_n x + b_n)
    MUT3   z = s(W_z x + U_z tanh(h) + b_z)      r = s(W_r x + U_r h + b_r)      n = tanh(U_n (r h) + W_n x + b_n)

MUT1 and MUT2 read x itself where it is as wide as h, and else a product of x. Of one bias per gate the n of MUT1 and
the r of MUT2 have none, since the one bias belongs to the products with x or with h, which each lack a gate there.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman.network.cells.cell import Array, Cell, LayerState, Weights, unroll


class MUT(Cell, frozen=True, tag="mut"):
    """MUT1, MUT2 or MUT3 by its number; `skip` [H, I] is the product of x where it is not as wide as h."""

    number: Literal[1, 2, 3] = 1
    masks = None
    candidate = "n"

    @property
    def name(self) -> str:
        return f"mut{self.number}"

    @property
    def gates(self) -> tuple[str, ...]:
        return ("r", "n") if self.number == 1 else ("r", "z", "n")

    @property
    def input_gates(self) -> tuple[str, ...]:
        return {1: ("r", "z"), 2: ("z", "n"), 3: ("r", "z", "n")}[self.number]

    @property
    def keeps(self) -> tuple[tuple[str, int], ...]:
        """The update gate when it is shut, where its bias belongs to the products with h."""
        return () if self.number == 1 else (("z", -1),)

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        """The product of x, where x itself cannot be added."""
        return {} if self.number == 3 or inputs == size else {"skip": Array((size, inputs))}

    def step(self, w: Weights, x: Tensor, state: LayerState) -> LayerState:
        return self._driven(w, self._drive(w, x, state), state)

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        return unroll(self._driven, w, self._drive(w, xs, state), state)

    def _drive(self, w: Weights, x: Tensor, state: LayerState) -> Tensor:
        """The products of x, and x as it is added."""
        sums = linear(x, w.weight_ih, w.bias_ih)
        if self.number == 3:
            return sums
        return torch.cat([sums, x if x.shape[-1] == state[0].shape[-1] else linear(x, w.skip)], dim=-1)

    def _driven(self, w: Weights, drive: Tensor, state: LayerState) -> LayerState:
        (h,) = state
        size = h.shape[-1]
        of_x = dict(zip((*self.input_gates, "x"), drive.split(size, dim=-1), strict=self.number != 3))
        weights = dict(zip(self.gates, w.weight_hh.split(size), strict=True))
        biases = {} if w.bias_hh is None else dict(zip(self.gates, w.bias_hh.split(size), strict=True))

        def of_h(gate: str, h: Tensor) -> Tensor:
            return linear(h, weights[gate], biases.get(gate))

        z = of_x["z"]
        if self.number > 1:
            z = z + of_h("z", h.tanh() if self.number == 3 else h)
        r = (of_x["x" if self.number == 2 else "r"] + of_h("r", h)).sigmoid()
        n = (of_h("n", r * h) + (of_x["x"].tanh() if self.number == 1 else of_x["n"])).tanh()
        return (torch.lerp(h, n, z.sigmoid()),)
