"""What a recipe or a model that is written remembers of its plug-ins, and what is missing where it is read."""

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from elman.config.plugins import VARIABLE, Source, added, loaded, owner_of
from elman.errors import UserError, notice

_told: set[tuple[str, str]] = set()
"""Of which plug-ins, recorded and loaded, it has been said that they differ."""

_BY_NAME = {"activation": "activations", "loss": "losses"}
"""Keys of a recipe whose parts are written by their names, and the groups of these."""


def used(recipe: Any) -> list[Source]:
    """The plug-ins to which the parts of a recipe belong, in the order of loading."""
    owners = set(_owners_in(recipe))
    return [one for one in loaded if one.name in owners]


def _owners_in(value: Any, key: str = "") -> Iterator[str | None]:
    yield owner_of(type(value))
    if isinstance(value, msgspec.Struct):
        for name, part in msgspec.structs.asdict(value).items():
            yield from _owners_in(part, name)
    elif isinstance(value, tuple):
        for part in value:
            yield from _owners_in(part, key)
    elif key in _BY_NAME and value in (parts := added(_BY_NAME[key])):
        yield owner_of(parts[value])


def recorded(sources: Sequence[Source], *, places: bool = True) -> list[dict[str, str]]:
    """Plug-ins as a recipe or a model records them; without `places` a file by its name alone."""
    names = [one.name if places else Path(one.name).name for one in sources]
    return [{"name": name, "version": one.version} for name, one in zip(names, sources, strict=True)]


@contextlib.contextmanager
def needed(reader: str, table: Any) -> Iterator[None]:
    """Within the block a thing is read that was written with the plug-ins of a table of `recorded`; None: with none.

    Raises UserError in place of a msgspec.ValidationError where one of them is not loaded. Where it is loaded in
    another version a line on standard error states it.
    """
    try:
        sources = [] if table is None else msgspec.convert(table, list[Source])
    except msgspec.ValidationError as error:
        raise UserError(f"{reader}: plugins: no list of plug-ins with their names and versions ({error})") from None
    others = [(one, _loaded_as(one)) for one in sources]
    for one, other in others:
        if other is not None and other.version != one.version and (one.version, other.version) not in _told:
            _told.add((one.version, other.version))
            notice(f"{reader}: written with the plug-in {_shown(one)}; here it is {_shown(other)}, which may differ")
    try:
        yield
    except msgspec.ValidationError:
        missing = next((one for one, other in others if other is None), None)
        if missing is None:
            raise
        raise UserError(f"{reader} needs the plug-in {_shown(missing)}: {_cure(missing)}") from None


def _loaded_as(source: Source) -> Source | None:
    """The loaded plug-in that serves for one: the same, or one of its name."""
    same = [one for one in loaded if one.version == source.version and _is_file(one) and _is_file(source)]
    return next(iter([*same, *(one for one in loaded if Path(one.name).name == Path(source.name).name)]), None)


def _is_file(source: Source) -> bool:
    return source.name.endswith(".py")


def _shown(source: Source) -> str:
    return f"{source.name} ({source.version:.12})" if _is_file(source) else f"{source.name} {source.version}"


def _cure(source: Source) -> str:
    if not _is_file(source):
        return f"pip install {source.name}=={source.version}"
    file = shlex.quote(source.name)
    return f"add --plugin {file}, or in Python set {VARIABLE}={file} before elman is imported"
