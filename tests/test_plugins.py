"""Plug-ins: cells, outputs and activations of other packages and files, in processes of their own."""

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from elman import testing
from support.commands import refusal

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "plugin"

FILE = """
from typing import ClassVar

from torch.nn.functional import linear

from elman.config.output import Choice
from elman.network.cells.cell import Cell
from elman.network.output.flat import Flat


class Sum(Cell, frozen=True, tag="sum"):
    share: float = 0.5
    gates = ("n",)

    def step(self, w, x, state):
        return (self.share * state[0] + linear(x, w.weight_ih, w.bias_ih).tanh(),)


class Plain(Choice, frozen=True, tag="plain"):
    bias: bool = True

    def build(self, surroundings):
        return Flat(bias=self.bias).build(surroundings)


ELMAN = {"cells": [Sum], "outputs": [Plain]}
"""

RECIPE = """
title = "plug-in"
seed = 1
[data]
kind = "text"
[model.encoder]
kind = "lookup"
size = 4
[model.core]
kind = "stack"
sizes = [4]
cell = { kind = "sum", share = 0.25 }
[model.output.choice]
kind = "plain"
[training]
epochs = 1
batch_size = 2
optimiser = { kind = "sgd", lr = 0.5 }
window = { length = 5 }
"""


SEVERAL = "import json, sys; from elman.cli import main; print([main(one) for one in json.loads(sys.argv[1])])"


def elman(*arguments, installed=(), **changes):
    """A command in a process of its own, with these folders on the path of packages."""
    return process("-m", "elman", *arguments, installed=installed, **changes)


def elman_in_turn(*commands, installed):
    """Commands one after the other in a process of its own, whose exit statuses are the last line."""
    return process("-c", SEVERAL, json.dumps([[*map(str, command)] for command in commands]), installed=installed)


def process(*arguments, installed=(), **changes):
    environment = {name: value for name, value in os.environ.items() if name != "ELMAN_PLUGINS"}
    environment |= {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *map(str, installed)]), **changes}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=200)


@pytest.mark.slow
def test_files_of_one_name_keep_their_own_builders(tmp_path):
    """Each record's builder is that of its own file; a file given twice is one plug-in."""
    files = []
    for folder, tag, bias in (("one", "plain-one", "False"), ("two", "plain-two", "True")):
        (tmp_path / folder).mkdir()
        text = FILE.replace('tag="plain"', f'tag="{tag}"').replace('tag="sum"', f'tag="{tag}-sum"')
        files.append(tmp_path / folder / "parts.py")
        files[-1].write_text(text.replace("Flat(bias=self.bias)", f"Flat(bias={bias})"))
    code = (
        "import sys; from pathlib import Path\n"
        "from elman import config; from elman.config import plugins\n"
        "for file in sys.argv[1:]: plugins.load_file(Path(file))\n"
        "added = plugins.added('outputs')\n"
        "print([one.build.__code__.co_filename for one in added.values()], len(plugins.loaded))"
    )
    again = tmp_path / "one" / ".." / "one" / "parts.py"
    done = process("-c", code, *files, again)
    assert done.stdout.strip() == f"{[str(file) for file in files]} 2", done.stderr


def install_example(folder):
    """The example package as an installer leaves it, by its own table of entry points."""
    import tomllib

    facts = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    info = folder / "elman_example-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {facts['name']}\nVersion: {facts['version']}\n")
    sections = [
        "\n".join([f"[{group}]", *(f"{name} = {place}" for name, place in points.items())])
        for group, points in facts["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(sections) + "\n")
    return folder, EXAMPLE / "src"


@pytest.mark.slow
def test_a_file_adds_a_cell_and_an_output(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("ELMAN_PLUGINS", raising=False)
    plugin, recipe, text, out = (tmp_path / name for name in ("parts.py", "recipe.toml", "text.txt", "run"))
    plugin.write_text(FILE)
    recipe.write_text(RECIPE)
    text.write_text("one two three four five six\n" * 60)
    train = ("train", recipe, "--data", text, "--out", out, "--threads", 1)
    assert 'kind = "sum"; write one of "continuous", "deltanet"' in refusal(capsys, *train)
    trained = elman("--plugin", plugin, *train)
    assert trained.returncode == 0, trained.stderr
    by_environment = elman("evaluate", out, "--json", "--threads", 1, ELMAN_PLUGINS=str(plugin))
    assert json.loads(by_environment.stdout)["perplexity"] > 1
    (told,) = json.loads((out / "environment.json").read_text())["plugins"]
    assert told["name"] == str(plugin)
    assert len(told["version"]) == 64
    assert 'kind = "sum"; write one of' in refusal(capsys, "evaluate", out)  # without the plug-in


@pytest.mark.slow
def test_the_example_is_installed_by_pip_and_exported_to_every_format(tmp_path):
    pytest.importorskip("setuptools", reason="pip builds the example with setuptools, which elman[dev] installs")
    needed = {"onnx": "onnxruntime", "torch": "torch", "hf": "transformers"}
    forms = [form for form, package in needed.items() if importlib.util.find_spec(package)]
    source, site, text, out = (tmp_path / name for name in ("plugin", "site", "text.txt", "run"))
    shutil.copytree(EXAMPLE, source)
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check")
    pip = [sys.executable, "-m", "pip", "install", *options, "--target", str(site), str(source)]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    frequent, rare = "one one one one one one one one one one\n" * 500, "seven\n" * 3  # as far apart as Shakespeare's
    text.write_text("one two three four five six\n" * 60 + rare + frequent)
    small = ("--set", "model.core.sizes=[8]", "--set", "model.encoder.size=8", "--set", "training.epochs=1")
    train = ("train", source / "recipe.toml", "--data", text, "--out", out, "--threads", 1, *small)
    trained = elman(*train, "--set", "training.batch_size=2", installed=[site])
    assert trained.returncode == 0, trained.stderr
    (told,) = json.loads((out / "environment.json").read_text())["plugins"]
    assert told == {"name": "elman-example", "version": "0.1.0"}
    exports = [("export", out, "--to", form, "--out", tmp_path / form) for form in forms]
    exported = elman_in_turn(*exports, installed=[site])
    assert exported.stdout.splitlines()[-1] == str([0] * len(forms)), exported.stderr
    for form in {"onnx", "torch"} & {*forms}:
        facts = json.loads((tmp_path / form / "config.json").read_text())
        assert facts["files"][0]["difference"] < 1e-4


def test_the_example_keeps_the_rules(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLE / "src")
    testing.check_cell(importlib.import_module("elman_example.cell").Independent())
    testing.check_activation(importlib.import_module("elman_example.activation").SQUAREPLUS)


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("ELMAN = [", ":1: SyntaxError"),
        ("import math\nmath.nothing", ":2: AttributeError"),
        ("ELMAN = {'cells': int}", "cells: <class 'int'> stands alone; write a list of parts"),
        ("x = 1", "it must have a dictionary ELMAN"),
        ("ELMAN = {'cell': []}", "with keys among cells, cores, encoders"),
        ("ELMAN = {'cells': [int]}", "is not a frozen elman.network.cells.cell.Cell with a tag"),
        (FILE.replace('tag="sum"', 'tag="lstm"'), "the name 'lstm' is taken"),
        (FILE.replace('tag="plain"', 'tag="flat"'), "the name 'flat' is taken"),
        ("ELMAN = {'activations': {'softmax': None}}", "the name 'softmax' is taken"),
        ("ELMAN = {'claims': [1]}", "1 is not a Claim"),
        ("ELMAN = {'tasks': [int]}", "is not a frozen elman.config.data.Data with a tag"),
        ("ELMAN = {'activations': {'cube': 1}}", "activations: 'cube': 1 is not an elman.network.output.activation"),
    ],
)
def test_a_broken_file_is_refused_in_one_line(code, line, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("ELMAN_PLUGINS", raising=False)
    (tmp_path / "broken.py").write_text(code)
    refused = refusal(capsys, "recipes", "--plugin", tmp_path / "broken.py")
    assert line in refused
    assert str(tmp_path / "broken.py") in refused
    assert "ELMAN_PLUGINS" not in os.environ


def test_a_broken_package_is_named_with_its_cure(tmp_path):
    site, _ = install_example(tmp_path / "site")
    refused = elman("recipes", installed=[site])  # its code is not there
    assert refused.returncode == 2
    assert "the plug-in elman-example (elman_example.cell:Independent) cannot be loaded" in refused.stderr
    assert "pip uninstall elman-example" in refused.stderr


@pytest.mark.slow
def test_a_plugin_needs_a_file(tmp_path):
    assert "--plugin needs the name of a file" in elman("recipes", "--plugin").stderr
    missing = elman("recipes", "--plugin", tmp_path / "missing.py")
    assert missing.returncode == 2
    assert "No such file" in missing.stderr
