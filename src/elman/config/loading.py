"""Plug-ins are loaded: a file with a dictionary ELMAN, or the entry point of a package; each part joins its family."""

import importlib.util
import itertools
import os
import sys
import traceback
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

from elman.config.parts import is_member, register, tag_of, unregister
from elman.config.plugins import FAMILIES, GROUPS, Source, all_added, calling, in_words, loaded, owners, roots
from elman.errors import UserError
from elman.files import sha256_file

_ACTIVATIONS = "elman.network.output.activation:ACTIVATIONS"
_TRIED = "elman.network.output.activation:tried"


def load_file(path: Path) -> None:
    """Load a file; raises UserError where it is missing, fails, or has no dictionary ELMAN of known groups."""
    try:
        source = Source(str(path), sha256_file(path))
    except OSError as error:
        raise UserError(f"--plugin {path}: {error.strerror or error}") from None
    if any(one.version == source.version and Path(one.name).resolve() == path.resolve() for one in loaded):
        return
    module = _module(path)
    roots.append(str(path))
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
        raise UserError(f"--plugin {path}{_line_in(error, str(path))}: {in_words(error)}") from error
    return module


def load_entry(group: str, point: EntryPoint) -> None:
    """Load a part that an installed package names; raises UserError where that fails."""
    package = point.dist.name if point.dist else point.value
    source = Source(package, point.dist.version if point.dist else "")
    try:
        part = point.load()
    except Exception as error:
        raise UserError(
            f"the plug-in {package} ({point.value}) cannot be loaded: {in_words(error)}; mend it, or pip uninstall"
            f" {package}"
        ) from error
    if (file := sys.modules[point.module.partition(".")[0]].__file__) is not None:
        roots.append(f"{Path(file).parent}{os.sep}" if Path(file).name == "__init__.py" else file)
    _add(group, point.name if group == "activations" else _name_of(group, part, package), part, package)
    if source not in loaded:
        loaded.append(source)


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
    table = resolve_name(_ACTIVATIONS) if group == "activations" else all_added[group]
    if name in table:
        raise UserError(f"{what}the name {name!r} is taken; choose another")
    if group == "activations":
        table[name] = calling(f"{what}{name!r}", lambda: resolve_name(_TRIED)(part, f"{what}{name!r}"))
        owners[part] = source
    elif group in FAMILIES:
        try:
            register(part, resolve_name(FAMILIES[group]))
        except UserError as error:
            raise UserError(f"{what}{error}") from None
        owners[part] = source
    all_added[group][name] = part


def _remove(group: str, name: str) -> None:
    part = all_added[group].pop(name)
    if group in FAMILIES:
        unregister(part, resolve_name(FAMILIES[group]))
    elif group == "activations":
        del resolve_name(_ACTIVATIONS)[name]
    if group != "claims":
        del owners[part]
