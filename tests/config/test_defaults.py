"""The defaults of everything that a recipe or an option can set, beside a recorded list.

A default that changes alters every run whose recipe is silent about it. The list is written again by
`PYTHONPATH=src python tests/config/test_defaults.py`.
"""

import importlib
import pkgutil
from pathlib import Path

import msgspec

RECORD = Path(__file__).with_name("defaults.txt")
ROOMS = ("config", "data", "decoding", "evaluation", "kinds", "learning", "network", "objective", "serve", "tasks")


def defaults():
    packages = [importlib.import_module(f"elman.{room}") for room in ROOMS]
    modules = [one for room in packages for one in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")]
    for module in modules:
        for kind in vars(importlib.import_module(module.name)).values():
            if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == module.name:
                for field in msgspec.structs.fields(kind):
                    if field.default not in (None, (), "", msgspec.NODEFAULT):
                        name = f"{module.name.removeprefix('elman.')}.{kind.__name__}.{field.name}"
                        yield f"{name} = {field.default!r}"


def test_defaults_are_the_recorded_ones():
    assert sorted(defaults()) == RECORD.read_text().splitlines()


if __name__ == "__main__":
    RECORD.write_text("".join(f"{line}\n" for line in sorted(defaults())))
