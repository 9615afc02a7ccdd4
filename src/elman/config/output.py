"""The output layer: contexts, and the choice of a symbol or frame given one of them."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from elman.config.parts import Activation, OneOf, Part
from elman.config.record import Positive, PositiveFloat, Rate, Record


class Contexts(Part, frozen=True):
    """How context vectors are read from the levels of a core."""

    folder = "elman.config.output"
    builder: ClassVar[str]


class Choice(Part, frozen=True):
    """The distribution of the next symbol, frame or vector of values, given one context."""

    folder = "elman.config.output"
    builder: ClassVar[str]


class Single(Contexts, frozen=True, tag="single"):
    """The last level is the only context."""

    builder: ClassVar = "elman.network.output.contexts:Single"


class Mixture(Contexts, frozen=True, tag="mixture"):
    """Mixture of softmaxes and DOC: `heads` maps a level (0 is the encoder) to its number of components."""

    builder: ClassVar = "elman.network.output.contexts:Mixture"
    heads: dict[int, Positive]
    size: Positive
    linear: bool = False
    dropout: Rate = 0.0
    shared_mask: bool = False
    prior: Literal["softmax", "same"] = "softmax"


class Flat(Choice, frozen=True, tag="flat"):
    """One normalisation over the vocabulary."""

    builder: ClassVar = "elman.network.output.flat:build"
    tied: bool = False
    bias: bool = True
    shift: bool = False


class Adaptive(Choice, frozen=True, tag="adaptive"):
    """Adaptive softmax: the head ends before word cutoffs[0], each tail before the next cut-off.

    Without `cutoffs` there is one tail, which begins where the words' frequencies make the output cheapest.
    `tied`: the words have the encoder's vectors, so that tails are not narrower (`div_value` = 1).
    """

    builder: ClassVar = "elman.network.output.adaptive:Adaptive"
    cutoffs: Annotated[tuple[Positive, ...], Meta(min_length=1)] | None = None
    div_value: Annotated[float, Meta(ge=1)] | None = None
    bias: bool = False
    tied: bool = False

    def __post_init__(self) -> None:
        if self.tied and self.div_value not in (None, 1):
            raise ValueError("div_value: the tails of a tied choice are as wide as the word vectors; leave it out")


class Tree(Choice, frozen=True, tag="tree"):
    """Hierarchical softmax, of ceil(sqrt(V)) clusters unless `clusters` is set."""

    builder: ClassVar = "elman.network.output.tree:Tree"
    clusters: Annotated[int, Meta(ge=2)] | None = None
    assignment: Literal["frequency", "random", "similarity"] = "frequency"
    tied: bool = False
    bias: bool = True


class RareClass(Choice, frozen=True, tag="rare-class"):
    """One output for all words with fewer than `threshold` occurrences."""

    builder: ClassVar = "elman.network.output.rare_class:RareClass"
    threshold: Positive
    bias: bool = True


class Monotone(Choice, frozen=True, tag="monotone"):
    """A learned increasing function of the logits, of `pieces` linear pieces on [-range, range]."""

    builder: ClassVar = "elman.network.output.monotone:Monotone"
    pieces: Positive = 1000
    range: PositiveFloat = 20.0
    tied: bool = False
    bias: bool = True


class Mixtape(Choice, frozen=True, tag="mixtape"):
    """Logits mixed by gates; each of the first `frequent` words has its own, all others share one."""

    builder: ClassVar = "elman.network.output.mixtape:Mixtape"
    components: Literal[2, 4, 8, 16] = 4
    gate_size: Positive = 64
    frequent: Positive = 1000
    size: Positive | None = None
    tied: bool = False
    bias: bool = True


class Bernoulli(Choice, frozen=True, tag="bernoulli"):
    """Notes that sound independently of each other."""

    builder: ClassVar = "elman.network.output.notes:Bernoulli"
    bias: bool = True


class NADE(Choice, frozen=True, tag="nade"):
    """Notes one after another, lowest first, through `size` hidden units."""

    builder: ClassVar = "elman.network.output.notes:NADE"
    size: Positive = 128


class Gaussian(Choice, frozen=True, tag="gaussian"):
    """Independent real values under normal distributions; `floor` is the least learned standard deviation."""

    builder: ClassVar = "elman.network.output.gaussian:Gaussian"
    variance: Literal["learned", "unit"] = "learned"
    floor: PositiveFloat = 1e-3


class GaussianMixture(Choice, frozen=True, tag="gaussian-mixture"):
    """Mixture density network: `components` normal distributions with diagonal variances, none below floor^2."""

    builder: ClassVar = "elman.network.output.gaussian:GaussianMixture"
    components: Annotated[int, Meta(ge=1)] = 5
    floor: PositiveFloat = 1e-3


class InputGate(Record, frozen=True):
    """A gate, set by the word just read, on the logits of a flat choice or on the last level that contexts read.

    `size`: the width of word vectors of the gate's own; None: it reads those of the encoder. `alone`: only the gate is
    trained, on the weights of another run (`elman train --init`).
    """

    on: Literal["logits", "level"] = "logits"
    size: Positive | None = None
    dropout: Rate = 0.0
    alone: bool = False


class Output(Record, frozen=True):
    """A choice, mixed over contexts; `gate`: the input-to-output gate, if there is one."""

    contexts: OneOf[Contexts] = Single()
    choice: OneOf[Choice] = Flat()
    activation: Activation = "softmax"
    gate: InputGate | None = None
