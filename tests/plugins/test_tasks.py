"""A kind of data of a plug-in: trained, resumed, evaluated and reported through the command line."""

import itertools
import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from elman.config import loading, plugins
from elman.config.data import Data
from elman.config.record import Record
from elman.data.text.corpus import TextCorpus
from elman.errors import UserError
from elman.learning import checkpoint
from elman.tasks.open import task_of
from elman.tasks.run import Run
from elman.tasks.task import Task
from elman.tasks.text.run import TextRun
from elman.tasks.text.task import TextTask
from elman.testing import check_task
from support import apart, text_runs
from support.commands import refusal

PLUGIN = Path(__file__).with_name("bases.py")
RECIPE = """
title = "bases"
seed = 1
[data]
kind = "bases"
[model.encoder]
kind = "lookup"
size = 4
[model.core]
kind = "stack"
sizes = [8]
[model.output.choice]
kind = "flat"
[training]
epochs = 2
batch_size = 4
optimiser = { kind = "adam", lr = 0.02 }
window = { length = 10 }
log_every = 5
"""

SESSION = "import json, sys; from elman.cli import main; print([main(one) for one in json.loads(sys.argv[1])])"


def session(*commands, plugin=PLUGIN):
    """Commands in one process of its own, whose exit statuses are the last line."""
    given = [[*map(str, command)] for command in commands]
    return apart.run(SESSION, json.dumps(given), environment=os.environ | {"ELMAN_PLUGINS": str(plugin)})


@pytest.fixture
def dna(tmp_path):
    """Letters that follow each other in a circle, with a mistake in one of ten places."""
    draw = np.random.default_rng(0)
    steps = np.where(draw.random(2000) < 0.9, 1, draw.integers(0, 4, 2000))
    (tmp_path / "dna.txt").write_text("".join("ACGT"[at % 4] for at in steps.cumsum()))
    (tmp_path / "recipe.toml").write_text(RECIPE)
    return tmp_path


@pytest.mark.slow
def test_a_kind_of_data_is_trained_resumed_evaluated_and_reported(dna):
    train = ["train", dna / "recipe.toml", "--data", dna / "dna.txt", "--threads", 1, "--out"]
    done = session(
        [*train, dna / "whole"],
        [*train, dna / "cut", "--set", "training.epochs=1"],
        ["train", "--resume", "--out", dna / "cut", "--epochs", 2, "--threads", 1],
        ["evaluate", dna / "cut", "--json", "--threads", 1],
        ["report", dna / "cut", "--out", dna / "page.html"],
        ["info", dna / "cut"],
        ["generate", dna / "cut", "--threads", 1],
        ["evaluate", dna / "cut", "--method", "dynamic", "--threads", 1],
        [*train, dna / "wrong", "--set", "data.letter=AC"],
        [*train, dna / "wrong", "--set", "data.letters=ACG"],
        ["export", dna / "cut", "--out", dna / "onnx"],
    )
    assert done.returncode == 0, done.stderr
    statuses = json.loads(done.stdout.splitlines()[-1])
    assert statuses[:6] == [0] * 6, done.stderr
    assert statuses[6:] == [2] * 5, done.stderr
    assert "Traceback" not in done.stderr
    assert "data.letter" in done.stderr
    assert "runs on bases do not adapt" in done.stderr
    assert "'T' is none of the bases ACG" in done.stderr
    digests = [checkpoint.digest_of(checkpoint.load(dna / name / "model.safetensors")[0]) for name in ("whole", "cut")]
    assert digests[0] == digests[1]
    rows = json.loads((dna / "cut" / "results.json").read_text())
    assert rows[0]["perplexity"] < 3
    assert "perplexity" in (dna / "page.html").read_text()


def test_without_the_plug_in_the_kinds_are_listed(dna, monkeypatch, capsys):
    monkeypatch.delenv("ELMAN_PLUGINS", raising=False)
    line = refusal(capsys, "train", dna / "recipe.toml", "--data", dna / "dna.txt", "--out", dna / "run")
    assert 'data.kind = "bases"; write one of "music"' in line


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ('tag="bases"', 'tag="music"', "tasks: the name 'music' is taken; choose another"),
        (
            '    task: ClassVar[str] = f"{__name__}:BasesTask"\n',
            "",
            "tasks: 'bases' lacks task",
        ),
        ('tag_field="kind"', 'tag_field="sort"', "is not a frozen elman.config.data.Data with a tag"),
    ],
)
def test_a_broken_record_is_refused(before, after, line, tmp_path):
    code = PLUGIN.read_text()
    assert before in code
    (tmp_path / "broken.py").write_text(code.replace(before, after))
    with pytest.raises(UserError, match=re.escape(line)):
        loading.load_file(tmp_path / "broken.py")


class Unlike(Task):
    kind, run = "unlike", TextRun


class OfAnotherKind(TextTask):
    kind = "unlike"


class Unfinished(TextTask):
    kind = "data"
    run = type("UnfinishedRun", (Run,), {"kind": "data"})


@pytest.mark.parametrize(
    ("task", "line"),
    [
        ("nowhere:Task", "the plug-in p: 'data': ModuleNotFoundError: No module named 'nowhere'"),
        (f"{__name__}:nothing", "the plug-in p: 'data': AttributeError"),
        (f"{__name__}:json", "is no elman.tasks.task.Task of the kind 'data' with a run of this kind"),
        (f"{__name__}:Unlike", "is no elman.tasks.task.Task of the kind 'data' with a run of this kind"),
        (f"{__name__}:OfAnotherKind", "is no elman.tasks.task.Task of the kind 'data' with a run of this kind"),
        (f"{__name__}:Unfinished", "Unfinished or its run lacks adaptation_source, build, corpus, evaluate"),
    ],
)
def test_a_broken_task_is_refused(task, line, monkeypatch):
    class Unknown(Record, Data, frozen=True, tag_field="kind", tag="data"):
        pass

    Unknown.task = task
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Unlike.__module__])
    monkeypatch.setitem(plugins.owners, Unknown, "p")
    with pytest.raises(UserError, match=re.escape(line)):
        task_of(SimpleNamespace(kind="data", data=Unknown()))


@pytest.mark.slow
def test_an_error_in_the_code_of_a_task_names_its_line(dna):
    (dna / "broken.py").write_text(PLUGIN.read_text().replace("dtype=np.int32)\n", "dtype=np.int32) @ None\n"))
    train = ["train", dna / "recipe.toml", "--data", dna / "dna.txt", "--out", dna / "run", "--threads", 1]
    done = session(train, plugin=dna / "broken.py")
    assert re.fullmatch(rf"elman: a plug-in fails at {dna}/broken.py:\d+: \w+Error: .*\n", done.stderr)
    assert not (dna / "run").exists()


@pytest.mark.slow
def test_the_contract_of_tasks(tmp_path):
    corpus = text_runs.write_corpus(tmp_path / "corpus")
    check_task(text_runs.recipe(epochs=1), corpus)


def test_a_task_whose_data_change_is_found(tmp_path, monkeypatch):
    corpus = text_runs.write_corpus(tmp_path / "corpus")
    counted = itertools.count()
    monkeypatch.setattr(TextCorpus, "digest", property(lambda corpus: f"{next(counted)}"))
    with pytest.raises(AssertionError, match="the digest belongs to the data"):
        check_task(text_runs.recipe(epochs=1), corpus)
