"""The base of all records of a recipe, the ranges of their numbers, and how a kind of data is reported."""

import math
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

Rate: TypeAlias = Annotated[float, Meta(ge=0, lt=1)]
Fraction: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Positive: TypeAlias = Annotated[int, Meta(ge=1)]
Reach: TypeAlias = Annotated[int, Meta(ge=2, le=1000)]
Depth: TypeAlias = Annotated[int, Meta(ge=1, le=1000)]
PositiveFloat: TypeAlias = Annotated[float, Meta(gt=0)]
NonNegative: TypeAlias = Annotated[float, Meta(ge=0)]
Nonlinearity: TypeAlias = Literal["tanh", "sigmoid", "relu", "softplus"]
"""Of hidden units."""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a recipe."""


class Tagged(Record, frozen=True, tag_field="kind"):
    """A part that is one of several kinds; its key `kind` names it."""


R = TypeVar("R", bound=Record)


def restricted(value: Any, record: type[R]) -> R:
    """The part of a record that one of its base classes declares, as that class."""
    return record(**{field.name: getattr(value, field.name) for field in msgspec.structs.fields(record)})


class Reporting(NamedTuple):
    """How the losses and the data of runs are reported.

    `name` and `quantity` (as `elman.drawing.plots` knows it) belong to the loss, `unit` is what is counted, in the
    singular. `figure` is a second figure of results.json, and its heading, if there is one. `facts` are counts of
    each split in data.json, and their headings. `columns` are the measures of results.json that commands show, each
    with its heading and the form of its numbers. `read` is what the vocabulary has, where that is not what is counted.
    """

    name: str
    quantity: Literal["perplexity", "nll"]
    unit: str
    definition: str
    figure: tuple[str, str] | None
    facts: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str, str], ...] = ()
    read: str | None = None

    @property
    def in_perplexity(self) -> bool:
        """Report perplexity (otherwise nats per step)."""
        return self.quantity == "perplexity"

    @property
    def measure(self) -> str:
        """What the reported loss is called in a table: `perplexity`, or its unit, such as `nats per step`."""
        return self.name if self.in_perplexity else f"nats per {self.unit}"

    def of(self, nll: float) -> float:
        """The reported loss for an NLL (nats per token or step): that itself, or its perplexity, at most exp(700)."""
        return math.exp(min(nll, 700.0)) if self.in_perplexity else nll


TOKENS = Reporting(
    "perplexity",
    "perplexity",
    "token",
    "Perplexity is exp of the mean negative log-likelihood per token.",
    ("bits_per_character", "bits per character"),
    (("unknown", "unknown words"), ("characters", "characters"), ("lines", "lines")),
    (
        ("perplexity", "perplexity", ".2f"),
        ("nll", "nats/token", ".4f"),
        ("bits_per_token", "bits/token", ".4f"),
        ("bits_per_character", "bits/char", ".4f"),
        ("bits_per_byte", "bits/byte", ".4f"),
        ("word_perplexity", "ppl/word", ".5g"),
        ("accuracy", "accuracy", ".4f"),
        ("tokens", "tokens", ","),
        ("unknown", "unknown", ","),
    ),
)
"""Of texts and of pairs of texts."""
