"""From TOML to a recipe and back."""

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from elman.config.errors import explain
from elman.config.recipe import Recipe
from elman.errors import UserError


def load_recipe(path: Path, settings: list[str] | None = None) -> Recipe:
    """Read a recipe, with `key.path=value` settings laid over it.

    Raises:
        UserError: no such file, not TOML, an unknown key, a wrong type, a value out of range.

    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such recipe; `elman recipes` lists those that come with elman") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: not a readable TOML recipe ({error})") from None
    for setting in settings or []:
        _lay_over(raw, setting)
    return parse_recipe(raw, str(path))


def parse_recipe(raw: dict[str, Any], source: str) -> Recipe:
    """A recipe from plain dictionaries; `source` is named in error messages."""
    try:
        return msgspec.convert(raw, Recipe, str_keys=True)
    except msgspec.ValidationError as error:
        raise UserError(f"{source}: {explain(error, Recipe, raw)}") from None


def dump_recipe(recipe: Recipe) -> str:
    """The recipe as TOML with every default written out."""
    return tomli_w.dumps(_without_none(msgspec.to_builtins(recipe, str_keys=True)))


def changed_keys(old: Recipe, new: Recipe) -> list[str]:
    """The key paths at which two recipes differ."""
    a, b = (dict(_flatten(msgspec.to_builtins(recipe, str_keys=True))) for recipe in (old, new))
    return sorted(key for key in a.keys() | b.keys() if a.get(key) != b.get(key))


def _lay_over(raw: dict[str, Any], setting: str) -> None:
    path, equals, text = setting.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise UserError(f"--set {setting}: write key.path=value, such as --set training.optimiser.lr=20")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    table = raw
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise UserError(f"--set {setting}: {key} is not a table of the recipe")
    table[keys[-1]] = value


def _flatten(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        return [(path, value)]
    return [item for key, part in value.items() for item in _flatten(part, f"{path}.{key}" if path else str(key))]


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _without_none(part) for key, part in value.items() if part is not None}
    return [_without_none(part) for part in value] if isinstance(value, list | tuple) else value
