"""From TOML to a recipe and back, and the recipes that come with elman."""

import contextlib
import copy
import io
import math
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import tomli_w

from elman.config.data import Data
from elman.config.parts import convert
from elman.config.plugins import loaded
from elman.config.recipe import DataOfRecipe, Recipe
from elman.errors import UserError, did_you_mean
from elman.files import expanded, shipped_folder
from elman.formats import parse_toml, read_bytes, require_modest

FOLDER = shipped_folder("recipes")
"""Of the recipes that come with elman."""

OWN = ("title", "notes", "expected")
"""Keys that describe one recipe, so that they are not taken from its base."""

DESCRIPTIVE = ("title", "notes", "citation", "expected")
"""Keys of a recipe that change no result."""


def load_recipe(path: Path | str, settings: Sequence[str] | None = None) -> Recipe:
    """Read a recipe, complete it from its base, and apply `key.path=value` settings.

    The path names a file, or, as in the list of `elman recipes`, a recipe that comes with elman.
    `base = "ptb/awd-lstm.toml"` names another recipe, relative to the folder of this one or to the recipes that come
    with elman. Tables are merged, except that `heads`, and a table whose `kind` changes, replace the base's;
    `without = ["training.clip"]` leaves keys of the base out; `title`, `notes` and `expected` are never taken from it.

    Raises UserError where there is no such file, it is not TOML, a key is unknown, a value has a wrong type or is out
    of range, or bases form a circle.
    """
    return set_recipe(read_tables(resolve(Path(path))), settings or [], str(path))


def load_data(path: Path | str, settings: Sequence[str] = ()) -> Data:
    """How a recipe reads its data; of its other tables nothing is looked at, so that no module of torch is imported.

    Raises UserError as `load_recipe`.
    """
    tables = with_settings(read_tables(resolve(Path(path))), settings)
    read: dict[str, Any] = {key: tables[key] for key in ("data", "plugins") if key in tables}
    return _parsed(read, str(path), DataOfRecipe).data


def set_recipe(tables: dict[str, Any], settings: Sequence[str], source: str) -> Recipe:
    """The recipe of some tables, which are not changed, with `key.path=value` settings; raises as `load_recipe`."""
    return parse_recipe(with_settings(tables, settings), source)


def with_settings(tables: dict[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """The tables of a recipe, which are not changed, with `key.path=value` settings; raises UserError for a bad one."""
    if isinstance(settings, str):
        raise UserError(f'settings are a list of texts such as ["training.epochs=3"], not the text {settings!r}')
    raw = copy.deepcopy(tables)
    for setting in settings:
        _apply(raw, setting)
    return raw


def parse_recipe(raw: dict[str, Any], source: str) -> Recipe:
    """A recipe from plain dictionaries; `source` is named in error messages."""
    return _parsed(raw, source, Recipe)


R = TypeVar("R", bound=msgspec.Struct)


def _parsed(raw: dict[str, Any], source: str, record: type[R]) -> R:
    try:
        require_modest(raw)
    except ValueError as error:
        raise UserError(f"{source}: {error}") from None
    raw = dict(raw)
    try:
        with _plugged(source, raw.pop("plugins", None)):
            recipe = convert(raw, record)
    except msgspec.ValidationError as error:
        from elman.config.errors import explain

        raise UserError(f"{source}: {explain(error, record, raw)}") from None
    for key, value in flatten(raw):
        numbers = value if isinstance(value, list) else [value]
        if any(isinstance(one, float) and not math.isfinite(one) for one in numbers):
            raise UserError(f"{source}: {key} = {value}; write a finite number, or leave the key out")
    return recipe


def _plugged(source: str, table: Any) -> contextlib.AbstractContextManager[None]:
    """Within the block a recipe is read that was written with the plug-ins of a table; None: with none."""
    if table is None:
        return contextlib.nullcontext()
    from elman.config.remembered import needed

    return needed(source, table)


def dump_recipe(recipe: Recipe, *, places: bool = True) -> str:
    """The recipe as TOML with every default written out, and the plug-ins that it needs as a table `plugins`.

    Without `places` a plug-in that is a file is recorded by its name alone.
    """
    values = _without_none(msgspec.to_builtins(recipe, str_keys=True))
    if loaded:
        from elman.config.remembered import recorded, used

        table = recorded(used(recipe), places=places)
        values |= {"plugins": table} if table else {}
    return tomli_w.dumps(values)


def decisive(recipe: Recipe) -> dict[str, Any]:
    """The recipe as plain values, without its description and without where its data is: what decides its results."""
    values = {key: part for key, part in msgspec.to_builtins(recipe, str_keys=True).items() if key not in DESCRIPTIVE}
    return values | {"data": {key: part for key, part in values["data"].items() if key not in ("corpus", "digest")}}


def changed_keys(old: Recipe, new: Recipe) -> list[str]:
    """The key paths at which two recipes differ."""
    a, b = (dict(flatten(msgspec.to_builtins(recipe, str_keys=True))) for recipe in (old, new))
    return sorted(key for key in a.keys() | b.keys() if a.get(key) != b.get(key))


def shipped() -> Iterator[tuple[Path, Recipe]]:
    """Every recipe that comes with elman, with its path as `elman recipes` prints it (`recipes/ptb/awd-lstm.toml`)."""
    for path in sorted(FOLDER.rglob("*.toml")):
        yield Path("recipes") / path.relative_to(FOLDER), load_recipe(path)


def find(name: str) -> Path:
    """The path of a shipped recipe, such as `shakespeare/demo.toml`; raises UserError where there is no such recipe."""
    path = FOLDER / name
    if not path.is_file():
        raise UserError(f"no recipe {name} comes with elman; `elman recipes` lists them")
    return path


_MOST = 2**20
"""Bytes of a recipe at most."""


def resolve(path: Path) -> Path:
    """The path itself, or the shipped recipe that `elman recipes` lists under it where no such file exists."""
    path = expanded(path)
    ours = FOLDER.parent / path
    return ours if not path.exists() and ours.is_file() else path


def read_tables(path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The tables of a recipe file, completed from its base; `above`: the files that led here by their bases.

    Raises UserError as `load_recipe`, which parses them.
    """
    try:
        text = io.TextIOWrapper(io.BytesIO(read_bytes(path, _MOST)), encoding="utf-8-sig").read()
        raw = parse_toml(text)  # some editors begin a file with a mark
    except FileNotFoundError:
        near = did_you_mean(str(path), (f"recipes/{one.relative_to(FOLDER)}" for one in FOLDER.rglob("*.toml")))
        raise UserError(f"{path}: no such recipe{near}; `elman recipes` lists those that come with elman") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a readable TOML recipe ({error})") from None
    if "base" not in raw:
        return raw
    name, without, above = raw.pop("base"), raw.pop("without", []), (*above, path.resolve())
    places = [folder / name for folder in (path.parent, FOLDER)] if isinstance(name, str) else []
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise UserError(
            f"{path}: base = {name!r}: no such recipe in {path.parent} nor among those that come with elman;"
            " `elman recipes` lists them"
        )
    if found.resolve() in above:
        raise UserError(f"{path}: base = {name!r} leads back to {found}; a recipe cannot be its own base")
    if not isinstance(without, list) or not all(isinstance(key, str) for key in without):
        raise UserError(f'{path}: without = {without!r}; write a list of key paths, such as ["training.clip"]')
    base = read_tables(found, above)
    for key in without:
        _leave_out(base, key, f"{path}: without = {without!r}: {found} has no key {key!r}")
    if isinstance(changed := raw.get("data"), dict):
        _forget_digest(base, changed)
    return _merged({key: value for key, value in base.items() if key not in OWN}, raw)


def _leave_out(base: dict[str, Any], key: str, refusal: str) -> None:
    *tables, last = key.split(".")
    table: Any = base
    for name in tables:
        table = table.get(name) if isinstance(table, dict) else None
    if not isinstance(table, dict) or last not in table:
        raise UserError(refusal)
    del table[last]


def _forget_digest(raw: dict[str, Any], changed: Iterable[str]) -> None:
    """Leave the digest of the data out of a recipe's tables where some of their keys decide other data."""
    if isinstance(data := raw.get("data"), dict) and set(changed) - {"evaluation", "digest"}:
        data.pop("digest", None)


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The base with the changes; `heads`, and a table whose `kind` changes, replace the base's."""
    result = dict(base)
    for key, value in changes.items():
        old: Any = base.get(key)
        both = isinstance(old, dict) and isinstance(value, dict) and key != "heads"
        result[key] = _merged(old, value) if both and value.get("kind") in (None, old.get("kind")) else value
    return result


def set_keys(settings: Sequence[str]) -> list[str]:
    """The key paths of `key.path=value` settings."""
    return [setting.partition("=")[0].strip() for setting in settings]


def _apply(raw: dict[str, Any], setting: str) -> None:
    path, equals, text = setting.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise UserError(f"--set {setting}: write key.path=value, such as --set training.optimiser.lr=20")
    try:
        value = parse_toml(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    except ValueError as error:
        raise UserError(f"--set {path.strip()}: {error}") from None
    table = raw
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise UserError(f"--set {setting}: {key} is not a table of the recipe")
    table[keys[-1]] = value
    if keys[0] == "data":
        _forget_digest(raw, keys[1:2])


def flatten(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """The values of nested tables that are no tables, each with the path of its keys."""
    if not isinstance(value, dict):
        return [(path, value)]
    return [item for key, part in value.items() for item in flatten(part, f"{path}.{key}" if path else str(key))]


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _without_none(part) for key, part in value.items() if part is not None}
    return [_without_none(part) for part in value] if isinstance(value, list | tuple) else value
