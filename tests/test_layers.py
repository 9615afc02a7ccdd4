"""Imports point one way: from what runs to what it is made of."""

import ast
from pathlib import Path

import pytest

import elman

ROOT = Path(elman.__file__).parent

LAYERS = (
    ("errors", "files", "lock", "device", "units"),
    ("data",),
    ("config", "recipe_book", "state", "dropout", "cells.cell", "output.activation"),
    ("kernels",),
    ("cells", "encoders"),
    ("cores",),
    ("output", "stability"),
    ("model", "seq2seq"),
    ("objective", "initialisation"),
    ("build", "builders"),
    ("learning",),
    ("evaluation", "generation", "decoding", "search_constraint", "tree_constraint"),
    ("run_folder",),
    ("run", "music", "pair_run"),
    ("tasks", "material", "adaptation", "questions"),
    ("tuning_grid",),
    ("estimate", "ensemble", "experiment", "tuning", "laboratory"),
    ("report",),
    ("grammatical",),
    ("reproduce",),
    ("cli", "__main__"),
)
"""Lowest first. A module may import from its own layer and from those below; the longest name counts."""


def layer_of(module):
    """The layer of a module, named within the package."""
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        name = ".".join(parts[:end])
        for height, layer in enumerate(LAYERS):
            if name in layer:
                return height
    raise AssertionError(f"{module} has no place in LAYERS")


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def is_module(name):
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def imports(path):
    """What a file imports of the package, at its top or within a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "elman":
            inner = node.module.removeprefix("elman").removeprefix(".")
            for alias in node.names:
                name = f"{inner}.{alias.name}".removeprefix(".")
                yield name if is_module(name) else inner
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            yield from (name.removeprefix("elman.") for name in names if name.startswith("elman."))


FILES = {module_name(path): path for path in sorted(ROOT.rglob("*.py")) if module_name(path)}


@pytest.mark.parametrize("module", FILES)
def test_imports_point_downwards(module):
    height = layer_of(module)
    upwards = [name for name in imports(FILES[module]) if name and layer_of(name) > height]
    assert not upwards, f"{module} imports {', '.join(upwards)}"


def test_the_lowest_layers_do_without_torch():
    """Configuration and data catalogues are read by commands that should answer at once."""
    for module in ("errors", "files", "config", "recipe_book"):
        names = {
            (node.module if isinstance(node, ast.ImportFrom) else alias.name) or ""
            for node in ast.walk(ast.parse(FILES[module].read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        assert not {name for name in names if name.split(".")[0] == "torch"}
