"""Long short-term memory (Hochreiter & Schmidhuber 1997; forget gate: Gers et al. 2000)."""

from typing import Literal

import torch
from torch import Tensor

from elman.network.cells.cell import Array, Gated, LayerState, Shape, Weights
from elman.network.fast import lstm


class LSTM(Gated, frozen=True, tag="lstm"):
    """i, f, o = sigm(W x + U h + b), g = tanh(...):  c' = f c + i g,  h' = o tanh(c').

    Attributes:
        forget_gate: False: the form of 1997, f = 1
        peepholes: the gates also see the cell: i and f the old one, o the new one (Graves 2013, eqs 7-11)
        input_gate: independent of f; i = 1 - f (`coupled`: Greff et al. 2017, CIFG); or at most 1 - f (`capped`: Melis
            et al. 2018, 2020). The last two keep c between -1 and 1.
    """

    forget_gate: bool = True
    peepholes: bool = False
    input_gate: Literal["free", "coupled", "capped"] = "free"
    candidate = "g"

    def __post_init__(self) -> None:
        if self.peepholes and not self.forget_gate:
            raise ValueError("peepholes need the forget gate; set forget_gate = true")
        if self.input_gate != "free" and (self.peepholes or not self.forget_gate):
            raise ValueError(
                f'input_gate = "{self.input_gate}" needs a forget gate and no peepholes; set input_gate = "free", or'
                " forget_gate = true and peepholes = false"
            )

    @property
    def name(self) -> str:
        if not self.forget_gate:
            return "lstm-1997"
        if self.peepholes:
            return "lstm-peephole"
        return "lstm" if self.input_gate == "free" else f"lstm-{self.input_gate}"

    @property
    def gates(self) -> tuple[str, ...]:
        """i, f, g, o, without the one that a variant lacks."""
        lacking = "f" if not self.forget_gate else "i" if self.input_gate == "coupled" else ""
        return tuple(gate for gate in "ifgo" if gate != lacking)

    @property
    def keeps(self) -> tuple[tuple[str, int], ...]:
        return (("f", 1),) if self.forget_gate else ()

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        return {"peephole": Array((3, size), "bias")} if self.peepholes else {}

    def shapes(self, inputs: int, size: int) -> tuple[Shape, ...]:
        return (size,), (size,)

    def gated(self, w: Weights, z: Tensor, state: LayerState) -> LayerState:
        c = state[1]
        if self.input_gate == "coupled":
            f, g, o = z.chunk(3, dim=-1)
            c = torch.lerp(g.tanh(), c, f.sigmoid())
        elif not self.forget_gate:
            i, g, o = z.chunk(3, dim=-1)
            c = c + i.sigmoid() * g.tanh()
        elif self.peepholes:
            i, f, g, o = z.chunk(4, dim=-1)
            p_i, p_f, p_o = w.peephole
            c = (f + p_f * c).sigmoid() * c + (i + p_i * c).sigmoid() * g.tanh()
            o = o + p_o * c
        else:
            i, f, g, o = z.chunk(4, dim=-1)
            f, i = f.sigmoid(), i.sigmoid()
            c = f * c + (torch.minimum(i, 1 - f) if self.input_gate == "capped" else i) * g.tanh()
        return o.sigmoid() * c.tanh(), c

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        return lstm.scan(w, xs, state) if self.name == "lstm" else super().scan(w, xs, state)
