"""What reads symbols and what remembers them: encoders, cells and cores."""

from typing import Annotated, Literal

from msgspec import Meta

from elman.config.record import Positive, PositiveFloat, Rate, Record, Tagged


class Lookup(Tagged, frozen=True, tag="lookup"):
    """Word vectors (`encoders/lookup.py`)."""

    size: Positive
    dropout: Rate = 0.0
    word_dropout: Rate = 0.0
    scale: PositiveFloat = 1.0


class Frames(Tagged, frozen=True, tag="frames"):
    """A linear map of frames of notes (`encoders/frames.py`)."""

    size: Positive
    dropout: Rate = 0.0
    scale: PositiveFloat = 1.0
    bias: bool = False


class Elman(Tagged, frozen=True, tag="elman"):
    """Simple recurrent network (`cells/elman.py`)."""

    nonlinearity: Literal["tanh", "sigmoid", "relu"] = "tanh"


class LSTM(Tagged, frozen=True, tag="lstm"):
    """Long short-term memory (`cells/lstm.py`)."""

    forget_gate: bool = True
    peepholes: bool = False


class GRU(Tagged, frozen=True, tag="gru"):
    """Gated recurrent unit (`cells/gru.py`); `reset` says whether the gate acts before or after the product."""

    reset: Literal["before", "after"] = "after"


class Stack(Tagged, frozen=True, tag="stack"):
    """Layers of one cell (`cores/stack.py`)."""

    sizes: Annotated[tuple[Positive, ...], Meta(min_length=1)]
    cell: Elman | LSTM | GRU = LSTM()
    biases: Literal[0, 1, 2] = 2
    weight_drop: Rate = 0.0
    recurrent_dropout: Rate = 0.0
    between_dropout: Rate = 0.0
    output_dropout: Rate = 0.0


class FeedForward(Tagged, frozen=True, tag="window"):
    """Bengio's window model (`cores/window.py`)."""

    width: Positive
    size: Positive
    direct: bool = False
    output_dropout: Rate = 0.0


class Attentive(Tagged, frozen=True, tag="attentive"):
    """A stack that looks at the source (`cores/attentive.py`).

    `size`: of the attention layer, that of the last layer unless given; `score_size`: of the additive score, the same.
    """

    stack: Stack
    score: Literal["dot", "general", "additive"] = "general"
    size: Positive | None = None
    score_size: Positive | None = None
    feed: Literal["nothing", "output", "context"] = "nothing"
    output_dropout: Rate = 0.0


class Reader(Record, frozen=True):
    """What reads the source (`cores/source.py`); `stack.sizes` are of each direction.

    `encoder`: of the source's symbols; None: the target's vectors, where both have one vocabulary. `start`: the
    decoder's layers begin with the final states of the reader's, or with maps of the last of them.
    """

    stack: Stack
    encoder: Lookup | None = None
    bidirectional: bool = True
    start: Literal["copy", "bridge"] = "copy"
