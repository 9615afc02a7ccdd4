"""The base classes of the records of a recipe, and the ranges of their numbers."""

from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

Rate: TypeAlias = Annotated[float, Meta(ge=0, lt=1)]
Fraction: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Positive: TypeAlias = Annotated[int, Meta(ge=1)]
PositiveFloat: TypeAlias = Annotated[float, Meta(gt=0)]
NonNegative: TypeAlias = Annotated[float, Meta(ge=0)]
Activation: TypeAlias = Literal["softmax", "sigsoftmax", "sigmoid", "softplus", "relu", "spherical", "taylor"]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a recipe."""


class Tagged(Record, frozen=True, tag_field="kind"):
    """A part that is one of several kinds; its key `kind` says which."""


class Part(Tagged, frozen=True):
    """A part of the network.

    Attributes:
        builder: the class or function that builds it from its record, as "module:name"; it is imported when needed.

    """

    builder: ClassVar[str]


R = TypeVar("R", bound=Record)


def restricted(value: Any, record: type[R]) -> R:
    """The part of a record that one of its base classes declares, as that class."""
    return record(**{field.name: getattr(value, field.name) for field in msgspec.structs.fields(record)})
