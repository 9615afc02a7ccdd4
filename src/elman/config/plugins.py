"""Parts that other packages and single files add: cells, output distributions and activations, kinds of data, claims.

A package names them by entry points in the groups of `GROUPS`, such as `elman.cells` or `elman.claims`. A file, given
by `--plugin FILE` or in the environment variable ELMAN_PLUGINS, has a dictionary of them:

    ELMAN = {"cells": [Record], "outputs": [Record], "activations": {"name": Activation}, "tasks": [DataRecord],
             "claims": [CLAIM]}

A record is a frozen member of a family of `elman.config.parts` with a tag of its own (docs/plugins.md), and can be
written in every recipe.
"""

import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import msgspec

from elman.config.parts import tag_of
from elman.errors import UserError, command

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


class Source(msgspec.Struct, frozen=True):
    """Where a plug-in is from: a package with its version, or a file with its SHA-256."""

    name: str
    version: str


loaded: list[Source] = []
"""Plug-ins of this process, in the order of loading."""

all_added: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}

owners: dict[Any, str] = {}
"""By type of record, and by activation: the plug-in that added it."""

roots: list[str] = []
"""The files of plug-ins, and the folders of their packages."""


def added(group: str) -> Mapping[str, Any]:
    """What plug-ins have added to a group, by name."""
    return all_added[group]


def owner_of(part: Any) -> str | None:
    """The name of the plug-in that added a type of record or an activation; None where it is one of elman's own."""
    return owners.get(part)


def name_of(record: Any) -> str | None:
    """How messages name the part of a plug-in that a record is; None where it is one of elman's own."""
    owner = owners.get(type(record))
    return None if owner is None else f"the plug-in {owner}: {tag_of(record)!r}"


def calling(what: str, call: Callable[[], Any]) -> Any:
    """What code of a plug-in returns; raises UserError with its place where it fails."""
    try:
        return call()
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{what}: {place_of(error)}{in_words(error)}") from error


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


def in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def place_of(error: BaseException) -> str:
    """`FILE:LINE: ` of the innermost line of a plug-in's code at which an error arose; empty where there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename}:{frame.lineno}: " for frame in frames if frame.filename.startswith(tuple(roots))]
    return places[-1] if places else ""


def blame(error: BaseException) -> str | None:
    """One line about an error that arose in the code of a plug-in; None where no plug-in took part."""
    place = place_of(error)
    return f"a plug-in fails at {place}{in_words(error)}" if place and isinstance(error, Exception) else None


def resuming(name: str, out: Path, options: Sequence[str] = ()) -> str:
    """The command that continues a training or a sweep in a folder, with options and the files of loaded plug-ins."""
    files = [one.name for one in loaded if Path(one.name).is_absolute()]
    return command(name, "--resume", "--out", out, *options, *(word for file in files for word in ("--plugin", file)))


def load() -> None:
    """Load all plug-ins of installed packages, and the files that the environment names.

    Raises UserError with the place of the error where one cannot be loaded.
    """
    installed = entry_points()
    points = [(group, point) for group in GROUPS for point in installed.select(group=f"elman.{group}")]
    files = [Path(file) for file in os.environ.get(VARIABLE, "").split(os.pathsep) if file]
    if points or files:
        from elman.config import loading

        for group, point in points:
            loading.load_entry(group, point)
        for file in files:
            loading.load_file(file)
