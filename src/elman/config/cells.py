"""Recurrent cells: one step of a layer."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta

from elman.config.parts import Part
from elman.config.record import Depth, Fraction, Nonlinearity, Positive, PositiveFloat


class Controller(Part, frozen=True):
    """What reads the input and the memory of a Turing machine at every step: a cell, or a perceptron."""

    folder = "elman.config.cells"


class Cell(Controller, frozen=True):
    """One step of a layer."""

    folder = "elman.config.cells"
    builder: ClassVar[str]


class Elman(Cell, frozen=True, tag="elman"):
    """Simple recurrent network."""

    builder: ClassVar = "elman.network.cells.elman:build"
    nonlinearity: Nonlinearity = "tanh"


class LSTM(Cell, frozen=True, tag="lstm"):
    """Long short-term memory; `input_gate` is independent, 1 - f, or at most 1 - f."""

    builder: ClassVar = "elman.network.cells.lstm:build"
    forget_gate: bool = True
    peepholes: bool = False
    input_gate: Literal["free", "coupled", "capped"] = "free"


class GRU(Cell, frozen=True, tag="gru"):
    """Gated recurrent unit; `reset`: the gate acts before or after the product."""

    builder: ClassVar = "elman.network.cells.gru:build"
    reset: Literal["before", "after"] = "after"


class MinimalGated(Cell, frozen=True, tag="minimal-gated"):
    """Minimal gated unit: a GRU whose one gate both resets and updates."""

    builder: ClassVar = "elman.network.cells.minimal_gated:build"


class Highway(Cell, frozen=True, tag="highway"):
    """Recurrent highway network; `coupled`: the carry gate is 1 minus the transform gate."""

    builder: ClassVar = "elman.network.cells.highway:build"
    depth: Depth = 5
    coupled: bool = True


class Mogrifier(Cell, frozen=True, tag="mogrifier"):
    """An LSTM whose x and h gate each other first, through full matrices unless a `rank` is set."""

    builder: ClassVar = "elman.network.cells.mogrifier:build"
    rounds: Annotated[int, Meta(ge=0, le=1000)] = 5
    rank: Positive | None = None
    input_gate: Literal["free", "capped"] = "free"


class Ladder(Cell, frozen=True, tag="ladder"):
    """From Elman's network to the LSTM: `rung` is the last gate that is added; with the output gate it is the LSTM."""

    builder: ClassVar = "elman.network.cells.partial_lstm:build"
    rung: Literal["forget", "input", "output"] = "forget"


class Continuous(Cell, frozen=True, tag="continuous"):
    """Continuous-time recurrent network in Euler steps of length `dt`.

    `tau`: the time constants of the first and of the last unit, in the unit of `dt`, the others in geometric
    progression between them; `learned`: they are trained.
    """

    builder: ClassVar = "elman.network.cells.continuous:build"
    nonlinearity: Nonlinearity = "tanh"
    dt: PositiveFloat = 1.0
    tau: tuple[PositiveFloat, PositiveFloat] = (2.0, 2.0)
    learned: bool = False


class Unitary(Cell, frozen=True, tag="unitary"):
    """Unitary evolution network: complex units, two numbers of the layer's size each, whose recurrence keeps norms."""

    builder: ClassVar = "elman.network.cells.unitary:build"


class Perceptron(Controller, frozen=True, tag="feed-forward"):
    """A controller without a state: tanh(W z + b)."""


Heads: TypeAlias = Positive
Reach: TypeAlias = Annotated[int, Meta(ge=2, le=1000)]


class MinGRU(Cell, frozen=True, tag="min-gru"):
    """minGRU: a gated unit whose one gate and candidate read the input alone."""

    builder: ClassVar = "elman.network.cells.minimal_linear:build_gru"


class MinLSTM(Cell, frozen=True, tag="min-lstm"):
    """minLSTM: forget and input gate, scaled to add up to 1, and candidate read the input alone."""

    builder: ClassVar = "elman.network.cells.minimal_linear:build_lstm"


class QRNN(Cell, frozen=True, tag="qrnn"):
    """Quasi-recurrent network with fo-pooling; `window`: whether it reads the present input or the one before too."""

    builder: ClassVar = "elman.network.cells.quasi:build"
    window: Literal[1, 2] = 2


class SRU(Cell, frozen=True, tag="sru"):
    """Simple recurrent unit; `highway_bias`: the initial bias of the gate between the cell and the skip connection."""

    builder: ClassVar = "elman.network.cells.sru:build"
    highway_bias: Annotated[float, Meta(ge=-30, le=30)] = 0.0


class LRU(Cell, frozen=True, tag="lru"):
    """Linear recurrent unit of `states` complex numbers, by default as many as the layer has units.

    `radius` and `phase`: the eigenvalues begin between two radii, and with phases up to the given one.
    """

    builder: ClassVar = "elman.network.cells.lru:build"
    states: Positive | None = None
    radius: tuple[Fraction, Fraction] = (0.0, 1.0)
    phase: PositiveFloat = 6.283185307179586


class RGLRU(Cell, frozen=True, tag="rg-lru"):
    """Real-gated linear recurrent unit after a `convolution` over so many inputs; gates in blocks, one a head."""

    builder: ClassVar = "elman.network.cells.rg_lru:build"
    heads: Heads = 4
    convolution: Reach = 4


class SLSTM(Cell, frozen=True, tag="slstm"):
    """sLSTM of xLSTM: exponential input gate, normaliser and stabiliser; recurrent weights in blocks, one a head."""

    builder: ClassVar = "elman.network.cells.xlstm:build_slstm"
    heads: Heads = 4
    forget: Literal["sigmoid", "exponential"] = "sigmoid"


class MLSTM(Cell, frozen=True, tag="mlstm"):
    """mLSTM of xLSTM: a matrix memory in each head; `head_norm` normalises what is read from each.

    Queries and keys see a `convolution` over so many inputs, as in the paper's blocks, or the present input alone.
    """

    builder: ClassVar = "elman.network.cells.xlstm:build_mlstm"
    heads: Heads = 4
    head_norm: bool = True
    convolution: Reach | None = None


class Mamba2(Cell, frozen=True, tag="mamba2"):
    """Mixer of Mamba-2 (SSD): a decay per head; `states` rows of each head's memory, inner width `expand` times."""

    builder: ClassVar = "elman.network.cells.mamba2:build"
    heads: Heads = 4
    states: Positive = 16
    expand: Depth = 2
    convolution: Reach = 4


class DeltaNet(Cell, frozen=True, tag="deltanet"):
    """Delta rule on a matrix memory in each head, `gated` by a decay; `negative_eigenvalues`: beta up to 2."""

    builder: ClassVar = "elman.network.cells.deltanet:build"
    heads: Heads = 4
    gated: bool = True
    negative_eigenvalues: bool = False
    convolution: Reach = 4


class RWKV7(Cell, frozen=True, tag="rwkv7"):
    """Time mixing of RWKV-7; `rank` is that of the maps to decay, rate and output gate."""

    builder: ClassVar = "elman.network.cells.rwkv7:build"
    heads: Heads = 4
    rank: Positive = 16


class LocalAttention(Cell, frozen=True, tag="local-attention"):
    """Self-attention over the present input and the `window` - 1 before it, in heads, with rotary positions."""

    builder: ClassVar = "elman.network.cells.local_attention:build"
    heads: Heads = 4
    window: Reach = 128
