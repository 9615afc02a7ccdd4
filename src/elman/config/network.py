"""What reads symbols and what remembers them: encoders, cells and cores."""

from typing import Annotated, Literal

from msgspec import Meta

from elman.config.record import Positive, PositiveFloat, Rate, Tagged


class Lookup(Tagged, frozen=True, tag="lookup"):
    """Word vectors (`encoders/lookup.py`)."""

    size: Positive
    dropout: Rate = 0.0
    word_dropout: Rate = 0.0
    scale: PositiveFloat = 1.0


class Characters(Tagged, frozen=True, tag="characters"):
    """Words by their spelling (`encoders/characters.py`): `filters` says how many there are of each of `widths`."""

    size: Positive = 15
    widths: Annotated[tuple[Positive, ...], Meta(min_length=1)] = (1, 2, 3, 4, 5, 6)
    filters: Annotated[tuple[Positive, ...], Meta(min_length=1)] = (25, 50, 75, 100, 125, 150)
    highways: Annotated[int, Meta(ge=0)] = 1
    dropout: Rate = 0.0


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
