"""What reads symbols and what remembers them: encoders, cells and cores."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from elman.config.initialisation import Initialisation
from elman.config.output import Output
from elman.config.record import NonNegative, Positive, PositiveFloat, Rate, Record, Tagged


class Lookup(Tagged, frozen=True, tag="lookup"):
    """Word vectors (`network/encoders/lookup.py`)."""

    size: Positive
    dropout: Rate = 0.0
    word_dropout: Rate = 0.0
    scale: PositiveFloat = 1.0


class Characters(Tagged, frozen=True, tag="characters"):
    """Words by their spelling (`network/encoders/characters.py`): `filters` says how many there are of each of `widths`."""

    size: Positive = 15
    widths: Annotated[tuple[Positive, ...], Meta(min_length=1)] = (1, 2, 3, 4, 5, 6)
    filters: Annotated[tuple[Positive, ...], Meta(min_length=1)] = (25, 50, 75, 100, 125, 150)
    highways: Annotated[int, Meta(ge=0)] = 1
    dropout: Rate = 0.0


class Frames(Tagged, frozen=True, tag="frames"):
    """A linear map of frames of notes (`network/encoders/encoder.py`)."""

    size: Positive
    dropout: Rate = 0.0
    scale: PositiveFloat = 1.0
    bias: bool = False


class Elman(Tagged, frozen=True, tag="elman"):
    """Simple recurrent network (`network/cells/elman.py`)."""

    nonlinearity: Literal["tanh", "sigmoid", "relu"] = "tanh"


class LSTM(Tagged, frozen=True, tag="lstm"):
    """Long short-term memory (`network/cells/lstm.py`); `input_gate` is free, 1 - f, or at most 1 - f (`network/cells/lstm.py`)."""

    forget_gate: bool = True
    peepholes: bool = False
    input_gate: Literal["free", "coupled", "capped"] = "free"


class GRU(Tagged, frozen=True, tag="gru"):
    """Gated recurrent unit (`network/cells/gru.py`); `reset` says whether the gate acts before or after the product."""

    reset: Literal["before", "after"] = "after"


class Highway(Tagged, frozen=True, tag="highway"):
    """Recurrent highway network (`network/cells/highway.py`); `coupled`: the carry gate is 1 minus the transform gate."""

    depth: Positive = 5
    coupled: bool = True


class Mogrifier(Tagged, frozen=True, tag="mogrifier"):
    """An LSTM whose x and h gate each other first (`network/cells/mogrifier.py`); without `rank` by full matrices."""

    rounds: Annotated[int, Meta(ge=0)] = 5
    rank: Positive | None = None
    input_gate: Literal["free", "capped"] = "free"


class Ladder(Tagged, frozen=True, tag="ladder"):
    """A rung between Elman's network and the LSTM (`network/cells/partial_lstm.py`); the rung of the output gate is the LSTM."""

    rung: Literal["forget", "input", "output"] = "forget"


Cell: TypeAlias = Elman | LSTM | GRU | Highway | Mogrifier | Ladder


class Stack(Tagged, frozen=True, tag="stack"):
    """Layers of one cell (`network/cores/stack.py`), in a chain or with connections that skip layers (`network/cores/stack.py`)."""

    sizes: Annotated[tuple[Positive, ...], Meta(min_length=1)]
    cell: Cell = LSTM()
    connections: Literal["chain", "graves", "melis"] = "chain"
    biases: Literal[0, 1, 2] = 2
    weight_drop: Rate = 0.0
    recurrent_dropout: Rate = 0.0
    between_dropout: Rate = 0.0
    output_dropout: Rate = 0.0


class FeedForward(Tagged, frozen=True, tag="window"):
    """Bengio's window model (`network/cores/window.py`)."""

    width: Positive
    size: Positive
    direct: bool = False
    output_dropout: Rate = 0.0


class Attentive(Tagged, frozen=True, tag="attentive"):
    """A stack that looks at the source (`network/cores/attentive.py`).

    `size`: of the attention layer, that of the last layer unless given; `score_size`: of the additive score, the same.
    """

    stack: Stack
    score: Literal["dot", "general", "additive"] = "general"
    size: Positive | None = None
    score_size: Positive | None = None
    feed: Literal["nothing", "output", "context"] = "nothing"
    output_dropout: Rate = 0.0


class Reader(Record, frozen=True):
    """What reads the source (`network/cores/source.py`); `stack.sizes` are of each direction.

    `encoder`: of the source's symbols; None: the target's vectors, where both have one vocabulary. `start`: the
    decoder's layers begin with the final states of the reader's, or with maps of the last of them.
    """

    stack: Stack
    encoder: Lookup | None = None
    bidirectional: bool = True
    start: Literal["copy", "bridge"] = "copy"


class Jordan(Tagged, frozen=True, tag="jordan"):
    """Jordan's network (`network/cores/jordan.py`); `feedback`: the model's own output, or the true target."""

    size: Positive
    feedback: Literal["output", "target"] = "output"
    nonlinearity: Literal["tanh", "sigmoid", "relu"] = "tanh"
    decay: Rate = 0.0
    output_dropout: Rate = 0.0


class Reservoir(Tagged, frozen=True, tag="reservoir"):
    """Echo state network (`network/cores/reservoir.py`): random, fixed; the output layer alone is trained."""

    size: Positive
    radius: PositiveFloat = 0.9
    leak: Annotated[float, Meta(gt=0, le=1)] = 1.0
    density: Annotated[float, Meta(gt=0, le=1)] = 0.1
    input_scale: PositiveFloat = 1.0
    bias_scale: NonNegative = 0.0
    output_dropout: Rate = 0.0


class Bidirectional(Tagged, frozen=True, tag="bidirectional"):
    """Layers of one cell in both directions (`network/cores/bidirectional.py`): for encoders and taggers."""

    sizes: Annotated[tuple[Positive, ...], Meta(min_length=1)]
    cell: Cell = LSTM()
    biases: Literal[0, 1, 2] = 2
    weight_drop: Rate = 0.0
    recurrent_dropout: Rate = 0.0
    between_dropout: Rate = 0.0
    output_dropout: Rate = 0.0


Core: TypeAlias = Stack | FeedForward | Jordan | Reservoir | Bidirectional | Attentive


# FOLDED config/model.py: The network as a whole.
class Model(Record, frozen=True):
    """The network. `masks`: dropout masks held over time ("locked", Gal) or drawn anew ("fresh", Zaremba).

    `source`: what reads the source of each target, with the core attentive.
    """

    encoder: Lookup | Characters | Frames
    core: Core
    output: Output = Output()
    source: Reader | None = None
    initialisation: Initialisation = Initialisation()
    masks: Literal["locked", "fresh"] = "locked"
