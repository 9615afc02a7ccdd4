"""Recurrent cells: one step of a layer."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta

from elman.config.record import Depth, Nonlinearity, Part, Positive, PositiveFloat


class Elman(Part, frozen=True, tag="elman"):
    """Simple recurrent network."""

    builder: ClassVar = "elman.network.cells.elman:build"
    nonlinearity: Nonlinearity = "tanh"


class LSTM(Part, frozen=True, tag="lstm"):
    """Long short-term memory; `input_gate` is independent, 1 - f, or at most 1 - f."""

    builder: ClassVar = "elman.network.cells.lstm:build"
    forget_gate: bool = True
    peepholes: bool = False
    input_gate: Literal["free", "coupled", "capped"] = "free"


class GRU(Part, frozen=True, tag="gru"):
    """Gated recurrent unit; `reset`: the gate acts before or after the product."""

    builder: ClassVar = "elman.network.cells.gru:build"
    reset: Literal["before", "after"] = "after"


class MinimalGated(Part, frozen=True, tag="minimal-gated"):
    """Minimal gated unit: a GRU whose one gate both resets and updates."""

    builder: ClassVar = "elman.network.cells.minimal_gated:build"


class Highway(Part, frozen=True, tag="highway"):
    """Recurrent highway network; `coupled`: the carry gate is 1 minus the transform gate."""

    builder: ClassVar = "elman.network.cells.highway:build"
    depth: Depth = 5
    coupled: bool = True


class Mogrifier(Part, frozen=True, tag="mogrifier"):
    """An LSTM whose x and h gate each other first, through full matrices unless a `rank` is set."""

    builder: ClassVar = "elman.network.cells.mogrifier:build"
    rounds: Annotated[int, Meta(ge=0, le=1000)] = 5
    rank: Positive | None = None
    input_gate: Literal["free", "capped"] = "free"


class Ladder(Part, frozen=True, tag="ladder"):
    """From Elman's network to the LSTM: `rung` is the last gate that is added; with the output gate it is the LSTM."""

    builder: ClassVar = "elman.network.cells.partial_lstm:build"
    rung: Literal["forget", "input", "output"] = "forget"


class Continuous(Part, frozen=True, tag="continuous"):
    """Continuous-time recurrent network in Euler steps of length `dt`.

    `tau`: the time constants of the first and of the last unit, in the unit of `dt`, the others in geometric
    progression between them; `learned`: they are trained.
    """

    builder: ClassVar = "elman.network.cells.continuous:build"
    nonlinearity: Nonlinearity = "tanh"
    dt: PositiveFloat = 1.0
    tau: tuple[PositiveFloat, PositiveFloat] = (2.0, 2.0)
    learned: bool = False


class Unitary(Part, frozen=True, tag="unitary"):
    """Unitary evolution network: complex units, two numbers of the layer's size each, whose recurrence keeps norms."""

    builder: ClassVar = "elman.network.cells.unitary:build"


Cell: TypeAlias = Elman | LSTM | GRU | MinimalGated | Highway | Mogrifier | Ladder | Continuous | Unitary
