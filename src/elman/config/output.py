"""The output layer: contexts, and the choice of a symbol or frame given one of them."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from elman.config.parts import Activation, OneOf, Part, default
from elman.config.record import Positive, Rate, Record


class Contexts(Part, frozen=True):
    """How context vectors are read from the levels of a core."""

    folder = "elman.network.output.contexts"

    def build(self, dims: Sequence[int], activation: Activation) -> Any:
        """The `ContextLayer` over levels of widths `dims`; `activation` is that of the choice."""
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

    `size`: the width of word vectors of the gate's own; None: it reads those of the encoder. `alone`: only the gate is
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
