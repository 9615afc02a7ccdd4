"""How an option is declared: numbers with ranges, fields of records, and the options that many commands share."""

import functools
import inspect
import math
import os
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, dataclass_transform

import msgspec
from cyclopts import Group, Parameter
from msgspec import Meta

from elman.config.inference import Settings, contains, in_words, meta_of, option_of
from elman.errors import UserError
from elman.files import require_replaceable, require_writable
from elman.formats import LARGEST

if TYPE_CHECKING:
    from cyclopts import Token

    from elman.tasks.run import Run

RunT = TypeVar("RunT", bound="Run")
RecordT = TypeVar("RecordT", bound=msgspec.Struct)


def number(kind: type, meta: Meta, *, many: bool = False) -> Parameter:
    """The parameter of a number, or of one or more, in a range; nan and infinity are never accepted."""

    def convert(_: Any, tokens: "Sequence[Token]") -> Any:
        values = tuple(parse_number(kind, token.value) for token in tokens)
        return values if many else values[-1]

    def require(_: Any, value: Any) -> None:
        for one in value if many and value is not None else (value,):
            if one is not None and not contains(meta, one):
                raise ValueError(f"{one:g} must be {in_words(meta)}" if many else f"it must be {in_words(meta)}")

    metavar = _metavar("N" if kind is int else "X", meta)
    return Parameter(converter=convert, validator=require, metavar=metavar, consume_multiple=1 if many else None)


def parse_number(kind: type, text: str) -> float:
    """A finite number of a kind; raises ValueError, with what is expected."""
    try:
        value: float = kind(text)
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        decimal = text.replace(",", ".")
        hint = f", such as {decimal}" if kind is float and decimal.replace(".", "", 1).isdecimal() else ""
        raise ValueError(f"it must be {expected}{hint}") from None
    if kind is int and not -LARGEST <= value < LARGEST:
        raise ValueError("it must fit into 64 bits")
    if not math.isfinite(value):
        raise ValueError("it must be a finite number")
    return value


def _metavar(letter: str, meta: Meta) -> str:
    """A number as help shows it, with its range: `N>=1` or `0<X<=1`."""
    high = f"<={meta.le:g}" if meta.le is not None else f"<{meta.lt:g}" if meta.lt is not None else ""
    low, equal = (meta.gt, "") if meta.ge is None else (meta.ge, "=")
    if low is None:
        return f"{letter}{high}"
    return f"{low:g}<{equal}{letter}{high}" if high else f"{letter}>{equal}{low:g}"


Whole = Annotated[int, number(int, Meta())]
Natural = Annotated[int, number(int, Meta(ge=0))]
Positive = Annotated[int, number(int, Meta(ge=1))]
Real = Annotated[float, number(float, Meta())]
NonNegative = Annotated[float, number(float, Meta(ge=0))]
AboveZero = Annotated[float, number(float, Meta(gt=0))]
Share = Annotated[float, number(float, Meta(ge=0, le=1))]
NonNegatives = Annotated[tuple[float, ...], number(float, Meta(ge=0), many=True)]
Reals = Annotated[tuple[float, ...], number(float, Meta(), many=True)]


def _file_name(_: Any, value: str | Path | None) -> None:
    if value is not None and str(value).startswith("-") and str(value) != "-":
        raise ValueError("no such option")


TextRunFolder = Annotated[Path, Parameter(help="a run on text")]
PairRunFolder = Annotated[Path, Parameter(help="a run on pairs of a source and a target")]
RunFolders = Annotated[tuple[Path, ...], Parameter(help="run folders")]

TextFile = Annotated[str, Parameter(allow_leading_hyphen=True, validator=_file_name, metavar="FILE")]
"""A file to read; - is standard input."""

FreeText = Annotated[str, Parameter(allow_leading_hyphen=True, metavar="TEXT")]  # text, which may begin with a hyphen

Strings = Annotated[tuple[str, ...], Parameter(consume_multiple=1)]  # one or more words after an option

DataSource = Annotated[str | None, Parameter(metavar="DATA")]


def writable(_: Any, value: Path | None) -> None:
    """The validator of a file or folder to write: it is refused before the work if it cannot be written after it."""
    if value is not None and value != Path("-"):
        require_writable(value)


def file_to_write(_: Any, value: Path | None) -> None:
    """The validator of a file to write: as `file_to_extend`, and a file that elman has not written is refused too."""
    file_to_extend(_, value)
    if value is not None and value != Path("-"):
        require_replaceable(value)


def file_to_extend(_: Any, value: Path | None) -> None:
    """The validator of a file whose content is kept: as `writable`, and a folder is refused too."""
    if value is not None and os.path.isdir(value):  # noqa: PTH112 - raises nothing
        raise ValueError(f"it is a folder; give the name of a file, such as {value / 'NAME'}")
    writable(_, value)


def drawings(plot: Path, *others: str) -> list[Path]:
    """The file of --plot, and one beside it for each other drawing; raises UserError where one cannot be written."""
    if plot.suffix not in (".svg", ".png"):
        raise UserError(f"--plot {plot}: give a name that ends in .svg or .png")
    files = [plot, *(plot.with_stem(f"{plot.stem}-{one}") for one in others)]
    for file in files:
        require_replaceable(file)
    return files


OutFile = Annotated[Path | None, Parameter(name="--out", metavar="FILE", validator=file_to_write)]
OutText = Annotated[OutFile, Parameter(allow_leading_hyphen=True, validator=(_file_name, file_to_write))]
"""A file to write a text to; - is standard output."""

AsJson = Annotated[bool, Parameter(name="--json", help="print the result as JSON on standard output")]
AsUnk = Annotated[bool, Parameter(help="read unknown words as <unk>, also with a model that reads spelling")]
Settable = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set", metavar="KEY=VALUE", help="change a key of the recipe, such as training.epochs=3; may be repeated"
    ),
]

Tracked = Annotated[
    str | None,
    Parameter(
        env_var="ELMAN_TRACK",
        metavar="NAME[,NAME]",
        help="also send metrics, recipe, results and report to tensorboard, wandb, mlflow or trackio; none: to no"
        " tracker, also where the run or the environment variable ELMAN_TRACK names some",
    ),
]


def chosen_trackers(track: str | None) -> tuple[str, ...]:
    """The trackers that --track names; raises UserError where one is unknown or its package is missing."""
    if track is None:
        return ()
    from elman.tasks.tracking.trackers import names_of

    return names_of(track)


def trackers_of_runs(track: str | None) -> tuple[str, ...] | None:
    """The trackers of a command that trains many runs; None: no tracker, even where a run remembers some."""
    names = chosen_trackers(track)
    return None if track is not None and not names else names


def option(field: str, *records: msgspec.Struct) -> Parameter:
    """The option for a field of a record, which may be left out.

    Its name, range and help come from the record's type, its default is the value in the first of `records`; where
    others, which have a `kind`, differ, help shows theirs too.
    """
    record = type(records[0])
    kind = number_of(record, field)
    values = {getattr(one, "kind", ""): getattr(one, field) for one in records}
    default, *_ = values.values()
    others = [f"; {kind}: {value:g}" for kind, value in values.items() if value != default and field != "kind"]
    shown = (
        "" if default is None or default is False else (f"{default:g}" if isinstance(default, float) else str(default))
    )
    own = Parameter(name=option_of(record, field), help=_help_of(record)[field], show_default=shown + "".join(others))
    return own if kind is None else Parameter.combine(number(kind, meta_of(record, field)), own)


def number_of(record: type[msgspec.Struct], field: str) -> type[int] | type[float] | None:
    """The kind of number that a field of a record holds; None where it holds another thing."""
    hint = typing.get_type_hints(record)[field]
    return next((kind for kind in (int, float) if hint in (kind, kind | None)), None)


@functools.cache
def _help_of(record: type[msgspec.Struct]) -> dict[str, str]:
    import docstring_parser

    attributes = docstring_parser.parse(record.__doc__ or "").params
    return {one.arg_name: " ".join((one.description or "").split()) for one in attributes}


def record_of(base: RecordT, *groups: Any) -> RecordT:
    """A record with the values of option groups that were given, matched by the name of the option.

    Raises UserError where values do not fit together.
    """
    names = {option_of(type(base), name): name for name in base.__struct_fields__}
    asked = {option: value for options in groups for option, value in given(options).items()}
    changes = {names[option]: value for option, value in asked.items() if option in names}
    record = msgspec.structs.replace(base, **changes)
    if isinstance(record, Settings):
        record.check()
    return record


def given(options: Any) -> dict[str, Any]:
    """The values of an option group that were given, by option; None, False and an empty tuple mean not given."""
    values = {f"--{field.name.replace('_', '-')}": getattr(options, field.name) for field in fields(options)}
    return {name: value for name, value in values.items() if value is not None and value is not False and value != ()}


def refuse(names: Iterable[str], reason: str) -> None:
    """Raises UserError for the first of some options: it `belongs to --tune; add it`."""
    for name in names:
        raise UserError(f"{name} {reason}")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def group(
    title: str, place: int, *, of: msgspec.Struct | None = None, names: Sequence[str] = ()
) -> Callable[[Any], Any]:
    """The decorator of an option group, a frozen dataclass: its fields are options, listed under a title.

    The fields `names` of the record `of`, by default all its numbers, are options too, before the options of the group
    itself; see `record_of`.
    """
    listed = Parameter(name="*", group=Group(title, sort_key=place))

    def grouped(options: Any) -> Any:
        if of is not None:
            own = names or [name for name in of.__struct_fields__ if number_of(type(of), name) is not None]
            hints = typing.get_type_hints(type(of))
            fields = {name: Annotated[hints[name] | None, option(name, of)] for name in own}
            options.__annotations__ = fields | inspect.get_annotations(options)
            for name in own:
                setattr(options, name, None)
        return listed(dataclass(frozen=True, kw_only=True)(options))

    return grouped
