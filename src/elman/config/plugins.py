"""Parts that other packages and single files add: cells, output distributions and activations, kinds of data, claims.

A package names them by entry points in the groups of `GROUPS`, such as `elman.cells` or `elman.claims`. A file, given
by `--plugin FILE` or in the environment variable ELMAN_PLUGINS, has a dictionary of them:

    ELMAN = {"cells": [Record], "outputs": [Record], "activations": {"name": Activation}, "tasks": [DataRecord],
             "claims": [CLAIM]}

A record is a frozen member of a family of `elman.config.parts` with a tag of its own (docs/plugins.md), and can be
written in every recipe.
"""

import importlib.util
import itertools
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

import msgspec

from elman.config.parts import is_member, register, tag_of, unregister
from elman.errors import UserError, command
from elman.files import sha256_file

VARIABLE = "ELMAN_PLUGINS"
"""The environment variable with files, which the system's separator of paths divides."""

FAMILIES = {
    "cells": "elman.network.cells.cell:Cell",
    "cores": "elman.config.network:Core",
    "encoders": "elman.config.network:Encoder",
    "compositions": "elman.config.network:Composition",
    "contexts": "elman.config.network:Contexts",
    "outputs": "elman.config.network:Choice",
    "losses": "elman.config.training:Criterion",
    "penalties": "elman.config.training:Penalty",
    "rules": "elman.config.training:Rule",
    "optimisers": "elman.config.training:Optimiser",
    "constraints": "elman.config.training:Constraint",
    "tasks": "elman.config.data:Data",
}
"""By group of records: the family that they join."""

GROUPS = (*FAMILIES, "activations", "claims")

_ACTIVATIONS = "elman.network.output.activation:ACTIVATIONS"
_TRIED = "elman.network.output.activation:tried"


class Source(msgspec.Struct, frozen=True):
    """Where a plug-in is from: a package with its version, or a file with its SHA-256."""

    name: str
    version: str


loaded: list[Source] = []
"""Plug-ins of this process, in the order of loading."""

_added: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}

_owners: dict[Any, str] = {}
"""By type of record, and by activation: the plug-in that added it."""

_roots: list[str] = []
"""The files of plug-ins, and the folders of their packages."""


def added(group: str) -> Mapping[str, Any]:
    """What plug-ins have added to a group, by name."""
    return _added[group]


def owner_of(part: Any) -> str | None:
    """The name of the plug-in that added a type of record or an activation; None where it is one of elman's own."""
    return _owners.get(part)


def name_of(record: Any) -> str | None:
    """How messages name the part of a plug-in that a record is; None where it is one of elman's own."""
    owner = _owners.get(type(record))
    return None if owner is None else f"the plug-in {owner}: {tag_of(record)!r}"


def calling(what: str, call: Callable[[], Any]) -> Any:
    """What code of a plug-in returns; raises UserError with its place where it fails."""
    try:
        return call()
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{what}: {place_of(error)}{_told(error)}") from error


def built(record: Any, expected: type, *surroundings: Any) -> Any:
    """What `build` of a record returns; raises UserError where a plug-in's fails or returns another thing."""
    what = name_of(record)
    if what is None:
        return record.build(*surroundings)
    part = calling(what, lambda: record.build(*surroundings))
    if not isinstance(part, expected):
        name = f"{expected.__module__}.{expected.__qualname__}"
        raise wrong(record, f"its build returned {part!r:.60}, not an {name}")
    return part


def wrong(record: Any, told: str) -> UserError:
    """The error for a wrong result of a record's code, which names its plug-in."""
    return UserError(f"{name_of(record) or tag_of(record)}: {told}")


def place_of(error: BaseException) -> str:
    """`FILE:LINE: ` of the innermost line of a plug-in's code at which an error arose; empty where there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename}:{frame.lineno}: " for frame in frames if frame.filename.startswith(tuple(_roots))]
    return places[-1] if places else ""


def blame(error: BaseException) -> str | None:
    """One line about an error that arose in the code of a plug-in; None where no plug-in took part."""
    place = place_of(error)
    return f"a plug-in fails at {place}{_told(error)}" if place and isinstance(error, Exception) else None


def resuming(name: str, out: Path, options: Sequence[str] = ()) -> str:
    """The command that continues a training or a sweep in a folder, with options and the files of loaded plug-ins."""
    files = [one.name for one in loaded if Path(one.name).is_absolute()]
    return command(name, "--resume", "--out", out, *options, *(word for file in files for word in ("--plugin", file)))


def load() -> None:
    """Load all plug-ins of installed packages, and the files that the environment names.

    Raises UserError with the place of the error where one cannot be loaded.
    """
    installed = entry_points()
    for group in GROUPS:
        for point in installed.select(group=f"elman.{group}"):
            _load_entry(group, point)
    for file in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        load_file(Path(file))


def load_file(path: Path) -> None:
    """Load a file; raises UserError where it is missing, fails, or has no dictionary ELMAN of known groups."""
    try:
        source = Source(str(path), sha256_file(path))
    except OSError as error:
        raise UserError(f"--plugin {path}: {error.strerror or error}") from None
    if any(one.version == source.version and Path(one.name).resolve() == path.resolve() for one in loaded):
        return
    module = _module(path)
    _roots.append(str(path))
    table = getattr(module, "ELMAN", None)
    if not isinstance(table, Mapping) or not set(table) <= set(GROUPS):
        raise UserError(f"--plugin {path}: it must have a dictionary ELMAN with keys among {', '.join(GROUPS)}")
    done: list[tuple[str, str]] = []
    try:
        for group, parts in table.items():
            if not isinstance(parts, Mapping | list | tuple):
                raise UserError(f"--plugin {path}: {group}: {parts!r:.80} stands alone; write a list of parts, [...]")
            named = parts if isinstance(parts, Mapping) else {_name_of(group, part, str(path)): part for part in parts}
            for name, part in named.items():
                _add(group, name, part, str(path))
                done.append((group, name))
    except UserError:
        for group, name in done:
            _remove(group, name)
        raise
    loaded.append(source)


def _module(path: Path) -> ModuleType:
    same = (f"elman_plugin_{path.stem}{number or ''}" for number in itertools.count())
    name = next(one for one in same if one not in sys.modules)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"--plugin {path}: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UserError(f"--plugin {path}{_line_in(error, str(path))}: {_told(error)}") from error
    return module


def _load_entry(group: str, point: EntryPoint) -> None:
    package = point.dist.name if point.dist else point.value
    source = Source(package, point.dist.version if point.dist else "")
    try:
        part = point.load()
    except Exception as error:
        raise UserError(
            f"the plug-in {package} ({point.value}) cannot be loaded: {_told(error)}; mend it, or pip uninstall"
            f" {package}"
        ) from error
    if (file := sys.modules[point.module.partition(".")[0]].__file__) is not None:
        _roots.append(f"{Path(file).parent}{os.sep}" if Path(file).name == "__init__.py" else file)
    _add(group, point.name if group == "activations" else _name_of(group, part, package), part, package)
    if source not in loaded:
        loaded.append(source)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _line_in(error: Exception, file: str) -> str:
    if isinstance(error, SyntaxError):
        return f":{error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f":{lines[-1]}" if lines else ""


def _name_of(group: str, part: Any, source: str) -> str:
    """The kind of a record, or the name of a claim; raises UserError where it is none."""
    if group == "claims" and isinstance(getattr(part, "name", None), str):
        return str(part.name)
    if group in FAMILIES:
        family: type = resolve_name(FAMILIES[group])
        if is_member(part, family):
            missing = [name for name in vars(family).get("__annotations__", {}) if not hasattr(part, name)]
            missing += _unwritten(part, family)
            if missing:
                raise UserError(f"the plug-in {source}: {group}: {tag_of(part)!r} lacks {', '.join(missing)}")
            return tag_of(part)
    what = "a Claim" if group == "claims" else f"a frozen {FAMILIES[group].replace(':', '.')} with a tag"
    raise UserError(f"the plug-in {source}: {group}: {part!r} is not {what}")


def _unwritten(part: Any, family: type) -> list[str]:
    """The methods that a family leaves to its members and that a member lacks; a `build` of its own needs no others."""
    methods = {name: one for name, one in vars(family).items() if hasattr(one, "__code__")}
    left = {name: one for name, one in methods.items() if "NotImplementedError" in one.__code__.co_names}
    if hasattr(family, "build") and "build" not in left and part.build is not family.build:
        return []
    return [name for name, one in left.items() if getattr(part, name) is one]


def _add(group: str, name: str, part: Any, source: str) -> None:
    """Put a part into its family or table; raises UserError where its name is taken."""
    what = f"the plug-in {source}: {group}: "
    table = resolve_name(_ACTIVATIONS) if group == "activations" else _added[group]
    if name in table:
        raise UserError(f"{what}the name {name!r} is taken; choose another")
    if group == "activations":
        table[name] = calling(f"{what}{name!r}", lambda: resolve_name(_TRIED)(part, f"{what}{name!r}"))
        _owners[part] = source
    elif group in FAMILIES:
        try:
            register(part, resolve_name(FAMILIES[group]))
        except UserError as error:
            raise UserError(f"{what}{error}") from None
        _owners[part] = source
    _added[group][name] = part


def _remove(group: str, name: str) -> None:
    part = _added[group].pop(name)
    if group in FAMILIES:
        unregister(part, resolve_name(FAMILIES[group]))
    elif group == "activations":
        del resolve_name(_ACTIVATIONS)[name]
    if group != "claims":
        del _owners[part]
