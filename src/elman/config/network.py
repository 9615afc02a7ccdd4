"""The network: the families of its parts, and the model they make up.

A part is one file: its record, whose fields are the keys of a recipe, stands with its torch module, and `build` makes
the module. The families know no members.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from msgspec import field

from elman.config.initialisation import Initialisation
from elman.config.parts import Activation, OneOf, Part, default, later, tag_of
from elman.config.record import Positive, Rate, Record


class Contexts(Part, frozen=True):
    """How context vectors are read from the levels of a core."""

    folder = "elman.network.output.contexts"

    def build(self, dims: Sequence[int], activation: Activation) -> Any:
        """The `ContextLayer` over levels of widths `dims`; `activation`: of the choice."""
        raise NotImplementedError


class Choice(Part, frozen=True):
    """The distribution of the next symbol, frame or vector of values, given one context.

    `gated`: whether it has logits that an input-to-output gate can multiply.
    """

    folder = "elman.network.output"
    gated: ClassVar[bool] = False

    def build(self, surroundings: Any) -> Any:
        """The `Conditional` within its `Surroundings` (`elman.network.output.choice`)."""
        raise NotImplementedError


class InputGate(Record, frozen=True):
    """A gate, set by the word just read, on the logits of a flat choice or on the last level that contexts read.

    `size`: the width of word vectors of the gate's own; None: it reads the encoder's. `alone`: only the gate is
    trained, on the weights of another run (`elman train --init`).
    """

    on: Literal["logits", "level"] = "logits"
    size: Positive | None = None
    dropout: Rate = 0.0
    alone: bool = False


class Output(Record, frozen=True):
    """A choice, mixed over contexts; `gate`: the input-to-output gate, if there is one."""

    contexts: OneOf[Contexts] = default(Contexts, "single")
    choice: OneOf[Choice] = default(Choice, "flat")
    activation: Activation = "softmax"
    gate: InputGate | None = None


class Encoder(Part, frozen=True):
    """From symbols, frames of notes or real values to vectors."""

    folder = "elman.network.encoders"

    def build(self, inputs: Any) -> Any:
        """The `TokenEncoder` of `Inputs` (`elman.network.encoders.encoder`)."""
        raise NotImplementedError


class Core(Part, frozen=True):
    """What reads vectors one after another: everything between encoder and output layer.

    `reads`: the only kind of data that it is for, if there is one.
    """

    folder = "elman.network.cores"
    reads: ClassVar[str | None] = None

    @property
    def hears(self) -> bool:
        """Whether the output of the model is fed back into it."""
        return False

    def build(self, surroundings: Any) -> Any:
        """The `RecurrentCore` within its `Surroundings` (`elman.network.cores.core`)."""
        raise NotImplementedError


class Composition(Part, frozen=True):
    """How the vector of a node of a tree is made from the vectors of its children."""

    folder = "elman.network.trees"

    def build(self, input_size: int, size: int) -> Any:
        """The `Composition` of `elman.network.trees.composition` from word vectors to nodes of these widths."""
        raise NotImplementedError


if TYPE_CHECKING:
    Source: TypeAlias = Any
else:
    Source = later("elman.network.cores.source:Reader")


class Model(Record, frozen=True):
    """The network. `masks`: dropout masks held over time ("locked", Gal) or drawn at every step ("fresh", Zaremba).

    `source`: the layers that read the source, for an attentive core, or for a stack that continues from its last state.
    """

    encoder: OneOf[Encoder]
    core: OneOf[Core]
    output: Output = field(default_factory=Output)
    source: Source | None = None
    initialisation: Initialisation = Initialisation()
    masks: Literal["locked", "fresh"] = "locked"

    @property
    def attends(self) -> bool:
        return tag_of(self.core) == "attentive"
