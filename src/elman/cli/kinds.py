"""What kinds of data add to the command line: commands, and options of training that set keys of a recipe.

Their packages name them (`COMMANDS`, `OPTIONS`), so that nothing else of a kind is imported.
"""

import dataclasses
import pkgutil
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from elman import kinds


def packages() -> list[ModuleType]:
    return [import_module(f"{kinds.__name__}.{one.name}") for one in pkgutil.iter_modules(kinds.__path__)]


def commands(group: str) -> dict[str, tuple[str, str]]:
    """The commands of a group of `elman --help`, or of a family such as `analyze`, by name: function and help."""
    found = [(name, one.__name__, *what) for one in packages() for name, what in one.COMMANDS.get(group, {}).items()]
    return {name: (f"{package}.{place}", line) for name, package, place, line in sorted(found)}


class KindOptions:
    """The options of `elman train` that are for some kinds of data."""

    def settings(self) -> list[str]:
        """The settings, `key.path=value`, that were asked for."""
        values = {name: getattr(self, name) for name in _offered()}
        keys = {name: key.partition("=")[0] for name, (key, _) in _offered().items()}
        return [f"{keys[name]}={'true' if value is True else value}" for name, value in values.items() if value]


def option_group() -> type[KindOptions]:
    fields: list[tuple[str, Any, Any]] = []
    for name, (key, line) in _offered().items():
        values, shown = tuple(key.partition("=")[2].split()), Parameter(help=line)
        fields.append((name, Annotated[Literal[values] | None if values else bool, shown], None if values else False))
    made = dataclasses.make_dataclass(
        "OptionsOfKinds", fields, bases=(KindOptions,), namespace={"__module__": __name__}
    )
    return Parameter(name="*")(made)


def _offered() -> dict[str, tuple[str, str]]:
    return {name: one for package in packages() for name, one in getattr(package, "OPTIONS", {}).items()}
