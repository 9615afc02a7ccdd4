"""What says the next symbol: contexts and choices."""

from typing import Annotated, Literal

from msgspec import Meta

from elman.config.record import Activation, Positive, PositiveFloat, Rate, Record, Tagged


class Single(Tagged, frozen=True, tag="single"):
    """The last level is the only context."""


class Mixture(Tagged, frozen=True, tag="mixture"):
    """MoS and DOC (`network/output/contexts.py`): `heads` maps a level (0 is the encoder) to its number of components."""

    heads: dict[int, Positive]
    size: Positive
    linear: bool = False
    dropout: Rate = 0.0
    shared_mask: bool = False
    prior: Literal["softmax", "same"] = "softmax"


class Flat(Tagged, frozen=True, tag="flat"):
    """One normalisation over the vocabulary (`network/output/flat.py`)."""

    tied: bool = False
    bias: bool = True
    shift: bool = False


class Adaptive(Tagged, frozen=True, tag="adaptive"):
    """Adaptive softmax (`network/output/adaptive.py`): the head ends before word cutoffs[0], tails before the others."""

    cutoffs: Annotated[tuple[Positive, ...], Meta(min_length=1)]
    div_value: Annotated[float, Meta(ge=1)] = 4.0
    bias: bool = False


class Tree(Tagged, frozen=True, tag="tree"):
    """Hierarchical softmax (`network/output/tree.py`); without `clusters` there are ceil(sqrt(V))."""

    clusters: Annotated[int, Meta(ge=2)] | None = None
    assignment: Literal["frequency", "random", "similarity"] = "frequency"
    tied: bool = False
    bias: bool = True


class RareClass(Tagged, frozen=True, tag="rare-class"):
    """One output for all words counted fewer times than `threshold` (`network/output/rare_class.py`)."""

    threshold: Positive
    bias: bool = True


class Monotone(Tagged, frozen=True, tag="monotone"):
    """A learned increasing function of the logits, of `pieces` lines on [-range, range] (`network/output/activation.py`)."""

    pieces: Positive = 1000
    range: PositiveFloat = 20.0
    tied: bool = False
    bias: bool = True


class Mixtape(Tagged, frozen=True, tag="mixtape"):
    """Logits mixed by gates that `frequent` words have each for themselves (`network/output/mixtape.py`)."""

    components: Literal[2, 4, 8, 16] = 4
    gate_size: Positive = 64
    frequent: Positive = 1000
    size: Positive | None = None
    tied: bool = False
    bias: bool = True


class Bernoulli(Tagged, frozen=True, tag="bernoulli"):
    """Notes that sound independently of each other (`network/output/notes.py`)."""

    bias: bool = True


class NADE(Tagged, frozen=True, tag="nade"):
    """Notes one after another, lowest first, through `size` hidden units (`network/output/notes.py`)."""

    size: Positive = 128


class Output(Record, frozen=True):
    """Contexts, mixed over a choice."""

    contexts: Single | Mixture = Single()
    choice: Flat | Adaptive | Tree | RareClass | Monotone | Mixtape | Bernoulli | NADE = Flat()
    activation: Activation = "softmax"
