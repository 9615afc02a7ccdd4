"""The Mogrifier (Melis, Kocisky & Blunsom 2020): x and h gate each other in turns before they enter an LSTM."""

from typing import Annotated, Literal

from msgspec import Meta
from torch import Tensor
from torch.nn.functional import linear

from elman.config.record import Positive
from elman.network.cells.cell import Array, Cell, LayerState, Shape, Weights
from elman.network.cells.lstm import LSTM
from elman.network.fast import mogrifier

LAST = {"free": LSTM(), "capped": LSTM(input_gate="capped")}
"""What ends a step, by its input gate."""


class Mogrifier(Cell, frozen=True, tag="mogrifier"):
    """x_i = 2 sigm(Q_i h_{i-1}) x_{i-2} for odd i, h_i = 2 sigm(R_i x_{i-1}) h_{i-2} for even i (eqs 1-2).

    After `rounds` gatings the step of an LSTM with the gates i, f, g, o is applied to the last x and h. With a `rank`
    the maps are products Q_i = Q_left Q_right of it, and R_i likewise; None: full matrices.
    """

    rounds: Annotated[int, Meta(ge=0, le=1000)] = 5
    rank: Positive | None = None
    input_gate: Literal["free", "capped"] = "free"
    gates = ("i", "f", "g", "o")
    candidate = "g"
    keeps = (("f", 1),)

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        """The maps of the rounds: q1, r2, q3, and so on, or two factors of each."""
        found = {}
        for i in range(1, self.rounds + 1):
            name, rows, columns = (f"q{i}", inputs, size) if i % 2 else (f"r{i}", size, inputs)
            if self.rank is None:
                found[name] = Array((rows, columns))
            else:
                found[f"{name}_left"] = Array((rows, self.rank))
                found[f"{name}_right"] = Array((self.rank, columns))
        return found

    def shapes(self, inputs: int, size: int) -> tuple[Shape, ...]:
        return (size,), (size,)

    def maps(self, w: Weights) -> list[tuple[Tensor, ...]]:
        names = [f"{'q' if i % 2 else 'r'}{i}" for i in range(1, self.rounds + 1)]
        ends = ("",) if self.rank is None else ("_left", "_right")
        return [tuple(getattr(w, name + end) for end in ends) for name in names]

    def step(self, w: Weights, x: Tensor, state: LayerState) -> LayerState:
        h, c = state
        for i, factors in enumerate(self.maps(w)):
            if i % 2:
                h = 2 * _product(factors, x).sigmoid() * h
            else:
                x = 2 * _product(factors, h).sigmoid() * x
        return LAST[self.input_gate].step(w, x, (h, c))

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        return mogrifier.scan(w, xs, state, self.maps(w), capped=self.input_gate == "capped")


def _product(factors: tuple[Tensor, ...], x: Tensor) -> Tensor:
    for factor in reversed(factors):
        x = linear(x, factor)
    return x
