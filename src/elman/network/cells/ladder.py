"""From Elman's network to the LSTM, one gate at a time (the survey's slides on gates); with all three it is the LSTM.

On the slides the first gate is h' = h * sigm(W_f (y + h + x)): the memory is scaled and never replaced, so a state that
begins at zero stays there. Here Elman's candidate tanh(W x + U y) is added to the scaled memory; with c for the
slides' h, the gates read x and y through matrices of their own, as in the LSTM.
"""

from typing import Literal

from torch import Tensor

from elman.network.cells.cell import Gated, LayerState, Shape, Weights
from elman.network.fast import lstm


class Ladder(Gated, frozen=True, tag="ladder"):
    """c' = f c + i g, y' = o tanh(c'), with the gates up to `rung`: f; i and f; or all three, the LSTM."""

    rung: Literal["forget", "input", "output"] = "forget"
    candidate = "g"
    keeps = (("f", 1),)

    @property
    def name(self) -> str:
        return "lstm" if self.rung == "output" else f"rung-{self.rung}"

    @property
    def gates(self) -> tuple[str, ...]:
        return tuple({"forget": "fg", "input": "ifg", "output": "ifgo"}[self.rung])

    def shapes(self, inputs: int, size: int) -> tuple[Shape, ...]:
        return (size,), (size,)

    def gated(self, w: Weights, z: Tensor, state: LayerState) -> LayerState:
        gate = dict(zip(self.gates, z.chunk(len(self.gates), dim=-1), strict=True))
        c = gate["f"].sigmoid() * state[1]
        c = c + (gate["g"].tanh() if "i" not in gate else gate["i"].sigmoid() * gate["g"].tanh())
        return c.tanh() if "o" not in gate else gate["o"].sigmoid() * c.tanh(), c

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        return lstm.scan(w, xs, state) if self.rung == "output" else super().scan(w, xs, state)
