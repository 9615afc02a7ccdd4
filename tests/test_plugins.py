"""Plug-ins: cells, outputs and activations of other packages and files, in processes of their own."""

import hashlib
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from elman import load, testing
from elman.errors import UserError
from support import apart
from support.commands import refusal

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "plugin"

FILE = """
from typing import ClassVar

from torch.nn.functional import linear

from elman.config.network import Choice
from elman.config.training import Constraint, Criterion, Optimiser, Penalty, Rule
from elman.learning.bptt import WholeWindow
from elman.learning.projections.projector import BySVD
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


class Sparse(Penalty, frozen=True, tag="sparse-units"):
    def __call__(self, seen):
        return self.weight * seen.mean(seen.trace.top.abs().mean(-1))


class Twice(Criterion, frozen=True, tag="twice"):
    def __call__(self, seen):
        nll = -seen.log_probs.gather(-1, seen.batch.targets.unsqueeze(-1)).squeeze(-1)
        return 2 * seen.mean(nll), nll.detach()


class Sign(Optimiser, frozen=True, tag="sign"):
    memory = ("mean",)

    def update(self, parameters, gradients, memory, lr, weight_decay):
        for weight, gradient, mean in zip(parameters, gradients, memory["mean"]):
            weight.sub_(lr * mean.lerp_(gradient, 0.1).sign())


class Small(Constraint, frozen=True, tag="small"):
    def projector(self, *, of_input):
        return BySVD(1.0)


class Whole(Rule, frozen=True, tag="whole"):
    stepwise = False

    def build(self):
        return WholeWindow()


ELMAN = {
    "cells": [Sum], "outputs": [Plain], "penalties": [Sparse], "losses": [Twice], "optimisers": [Sign],
    "constraints": [Small], "rules": [Whole],
}
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
loss = "twice"
optimiser = { kind = "sign", lr = 0.01 }
rule = { kind = "whole" }
window = { length = 5 }
penalties = { ar = 0.1, sparse-units = { weight = 0.1 } }
"""


SEVERAL = "import json, sys; from elman.cli import main; print([main(one) for one in json.loads(sys.argv[1])])"


def elman(*arguments, installed=(), **changes):
    """A command in a process of its own."""
    return process(
        "import sys; from elman.cli import main; sys.exit(main())", *arguments, installed=installed, **changes
    )


def elman_in_turn(*commands, installed):
    """Commands one after the other in a process of its own, whose exit statuses are the last line."""
    return process(SEVERAL, json.dumps([[*map(str, command)] for command in commands]), installed=installed)


def process(code, *arguments, installed=(), **changes):
    environment = {name: value for name, value in os.environ.items() if name != "ELMAN_PLUGINS"}
    return apart.run(code, *arguments, environment=environment | changes, paths=installed)


@pytest.mark.slow
def test_files_of_one_name_keep_their_own_builders(tmp_path):
    """Each record's builder is that of its own file; a file given twice is one plug-in."""
    files = []
    for folder, bias in (("one", "False"), ("two", "True")):
        (tmp_path / folder).mkdir()
        text = FILE.replace('tag="', f'tag="{folder}-')
        files.append(tmp_path / folder / "parts.py")
        files[-1].write_text(text.replace("Flat(bias=self.bias)", f"Flat(bias={bias})"))
    code = (
        "import sys; from pathlib import Path\n"
        "from elman import config; from elman.config import loading, plugins\n"
        "for file in sys.argv[1:]: loading.load_file(Path(file))\n"
        "added = plugins.added('outputs')\n"
        "print([one.build.__code__.co_filename for one in added.values()], len(plugins.loaded))"
    )
    again = tmp_path / "one" / ".." / "one" / "parts.py"
    done = process(code, *files, again)
    assert done.stdout.strip() == f"{[str(file) for file in files]} 2", done.stderr


def install_example(folder):
    """The example package as an installer leaves it, by its own table of entry points."""
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


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A plug-in, a run with its parts, and what transformers opens, from one process."""
    folder = tmp_path_factory.mktemp("plugin")
    plugin, recipe, text, out = (folder / name for name in ("parts.py", "recipe.toml", "text.txt", "run"))
    plugin.write_text(FILE)
    recipe.write_text(RECIPE)
    text.write_text("one two three four five six\n" * 60)
    commands = [("--plugin", plugin, "train", recipe, "--data", text, "--out", out, "--threads", 1)]
    if importlib.util.find_spec("transformers"):
        commands.append(("export", out, "--to", "hf", "--out", folder / "hf", "--plugin", plugin))
    done = elman_in_turn(*commands, installed=[])
    assert done.stdout.splitlines()[-1] == str([0] * len(commands)), done.stderr
    return folder


@pytest.fixture
def without(monkeypatch):
    monkeypatch.delenv("ELMAN_PLUGINS", raising=False)


def test_a_file_adds_a_cell_an_output_and_parts_of_training(made, without, capsys):
    recipe, text, out, moved = (made / name for name in ("recipe.toml", "text.txt", "run", "moved.py"))
    train = ("train", recipe, "--data", text, "--out", made / "other", "--threads", 1)
    assert 'kind = "sum"; write one of "chaos-free", "continuous"' in refusal(capsys, *train)
    moved.write_text(FILE)
    by_environment = elman("evaluate", out, "--json", "--threads", 1, ELMAN_PLUGINS=str(moved))
    assert json.loads(by_environment.stdout)["perplexity"] > 1
    assert "plug-in" not in by_environment.stderr  # the same file at another place
    (told,) = json.loads((out / "environment.json").read_text())["plugins"]
    assert told == {"name": str(made / "parts.py"), "version": hashlib.sha256(FILE.encode()).hexdigest()}


def test_a_run_names_its_plug_ins(made):
    tables = tomllib.loads((made / "run" / "recipe.toml").read_text())
    assert tables["plugins"] == json.loads((made / "run" / "environment.json").read_text())["plugins"]
    assert tables["training"]["penalties"]["sparse-units"] == {"kind": "sparse-units", "weight": 0.1}
    assert tables["training"]["loss"] == "twice"
    if (made / "hf").exists():
        passed_on = [tables["plugins"][0] | {"name": "parts.py"}]
        assert tomllib.loads((made / "hf" / "recipe.toml").read_text())["plugins"] == passed_on
        assert json.loads((made / "hf" / "config.json").read_text())["plugins"] == passed_on


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate",),
        ("info",),
        ("generate",),
        ("score", "-"),
        ("analyze", "stability"),
        ("export", "--to", "onnx", "--out", "exported"),
        ("compare", "{run}"),
        ("serve",),
        ("train", "--resume", "--out"),
        ("train", "{run}/recipe.toml", "--out", "again", "--init"),
    ],
)
@pytest.mark.parametrize("folder", ["run", "hf"])
def test_without_its_plug_in_a_run_says_which_to_give(folder, command, made, without, capsys, monkeypatch, tmp_path):
    if not (made / folder).exists():
        pytest.skip("transformers is not installed")
    monkeypatch.chdir(tmp_path)
    run, file = made / folder, made / "parts.py" if folder == "run" else "parts.py"
    name, *others = (word.format(run=run) for word in command)
    words = [name, *others, run] if name in ("train", "analyze") else [name, run, *others]
    digest = hashlib.sha256(FILE.encode()).hexdigest()[:12]
    assert refusal(capsys, *words) == (
        f"elman: {run}/recipe.toml needs the plug-in {file} ({digest}): add --plugin {file}, or in Python set"
        f" ELMAN_PLUGINS={file} before elman is imported"
    )


def test_without_its_plug_in_python_says_which_to_give(made, without):
    with pytest.raises(UserError, match=r"run/recipe.toml needs the plug-in .*parts.py \("):
        load(made / "run")
    pytest.importorskip("transformers")
    importlib.import_module("elman.hf")
    opened = importlib.import_module("transformers").AutoModelForCausalLM
    with pytest.raises(UserError, match=r"hf needs the plug-in parts.py \("):
        opened.from_pretrained(made / "hf")


def test_another_version_of_a_plug_in_is_told_once(made, tmp_path):
    (tmp_path / "parts.py").write_text(FILE + "# changed\n")
    out = tmp_path / "run"
    shutil.copytree(made / "run", out)
    more = ("train", "--resume", "--out", out, "--epochs", 2, "--threads", 1)
    commands = [("evaluate", out, "--threads", 1, "--plugin", tmp_path / "parts.py"), more]
    done = elman_in_turn(*commands, installed=[])
    assert done.stdout.splitlines()[-1] == "[0, 0]", done.stderr
    old, new = (hashlib.sha256(text.encode()).hexdigest()[:12] for text in (FILE, FILE + "# changed\n"))
    assert done.stderr.count("plug-in") == 1
    assert (
        f"elman: {out}/recipe.toml: written with the plug-in {made}/parts.py ({old}); here it is {tmp_path}/parts.py"
        f" ({new}), which may differ\n"
    ) in done.stderr


@pytest.mark.parametrize("value", ["3", "[3]", "[{name = 3, version = 'a'}]", "[{name = 'a'}]"])
def test_plug_ins_that_are_no_list_of_names_are_refused(value, tmp_path, without, capsys):
    (tmp_path / "recipe.toml").write_text(f"plugins = {value}\n{RECIPE}")
    line = refusal(capsys, "train", tmp_path / "recipe.toml", "--out", tmp_path / "run")
    assert "plugins: no list of plug-ins with their names and versions" in line


@pytest.mark.slow
def test_the_example_is_installed_by_pip_and_exported_to_every_format(tmp_path, capsys):
    pytest.importorskip("setuptools", reason="pip builds the example with setuptools, which elman[dev] installs")
    needed = {"onnx": "onnxruntime", "torch": "torch", "hf": "transformers"}
    forms = [form for form, package in needed.items() if importlib.util.find_spec(package)]
    source, site, text, out = (tmp_path / name for name in ("plugin", "site", "text.txt", "run"))
    shutil.copytree(EXAMPLE, source)
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check")
    pip = [sys.executable, "-m", "pip", "install", *options, "--target", str(site), str(source)]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    text.write_text("one two three four five six\n" * 60)
    small = (
        "--set",
        "training.precision=float32",
        "--set",
        "model.core.sizes=[8]",
        "--set",
        "model.encoder.size=8",
        "--set",
        "training.epochs=1",
    )
    train = ("train", source / "recipe.toml", "--data", text, "--out", out, "--threads", 1, *small)
    exports = [("export", out, "--to", form, "--out", tmp_path / form) for form in forms]
    commands = [(*train, "--set", "training.batch_size=2"), *exports, ("evaluate", out, "--threads", 1)]
    done = elman_in_turn(*commands, installed=[site])
    assert done.stdout.splitlines()[-1] == str([0] * len(commands)), done.stderr
    (told,) = json.loads((out / "environment.json").read_text())["plugins"]
    assert told == {"name": "elman-example", "version": "0.1.0"}
    recipe = (out / "recipe.toml").read_text()
    assert all(part in recipe for part in ("independent", "cosine", "squareplus", "sparsity", "elman-example"))
    cure = "pip install elman-example==0.1.0"
    assert refusal(capsys, "evaluate", out) == f"elman: {out}/recipe.toml needs the plug-in elman-example 0.1.0: {cure}"
    for form in {"onnx", "torch"} & {*forms}:
        facts = json.loads((tmp_path / form / "config.json").read_text())
        assert facts["files"][0]["difference"] < 1e-4


def test_the_example_keeps_the_rules(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLE / "src")
    testing.check_cell(importlib.import_module("elman_example.cell").Independent())
    testing.check_output(importlib.import_module("elman_example.output").Cosine())
    testing.check_activation(importlib.import_module("elman_example.activation").SQUAREPLUS)
    testing.check_penalty(importlib.import_module("elman_example.penalty").Sparsity(weight=0.1))


BROKEN = [
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
    ("ELMAN = {'losses': [3]}", "losses: 3 is not a frozen elman.config.training.Criterion with a tag"),
    (FILE.replace("update(", "step("), "optimisers: 'sign' lacks update"),
    (FILE.replace("projector(self", "project(self"), "constraints: 'small' lacks projector"),
    (FILE.replace("sparse-units", "tar"), "penalties: the name 'tar' is taken"),
    ("ELMAN = {'tasks': [int]}", "is not a frozen elman.config.data.Data with a tag"),
    ("ELMAN = {'activations': {'cube': 1}}", "activations: 'cube': 1 is not an elman.network.output.activation"),
]


def test_a_broken_file_is_refused_in_one_line(tmp_path):
    files = [tmp_path / f"broken_{number}.py" for number in range(len(BROKEN))]
    for file, (code, _) in zip(files, BROKEN, strict=True):
        file.write_text(code)
    refused = elman_in_turn(*(("recipes", "--plugin", file) for file in files), installed=[])
    assert refused.stdout.splitlines()[-1] == str([2] * len(BROKEN)), refused.stderr
    for said, file, (_, line) in zip(refused.stderr.splitlines(), files, BROKEN, strict=True):
        assert line in said
        assert str(file) in said


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
