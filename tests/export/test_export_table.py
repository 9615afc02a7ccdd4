"""The table of exports: a row for every recipe, and rows measured again; the comparison of three programs."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import elman
from elman.config.toml import shipped
from elman.export.step import TOLERANCE
from elman.tasks.text.run import TextRun
from support.commands import trained

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PAGE = BENCHMARKS.parent / "results" / "export-table.md"
RECIPES = {path.relative_to("recipes").with_suffix("").as_posix(): recipe for path, recipe in shipped()}
SCRIPT = runpy.run_path(str(BENCHMARKS / "exports_of_recipes.py"))


def test_every_recipe_has_one_row():
    text = PAGE.read_text()
    named = re.findall(r"`([\w-]+/[\w.-]+)`", text.partition("\n| recipe |")[2])
    assert sorted(named) == sorted(RECIPES)
    verified, _, refused = text.partition("## Refused")
    differences = [float(cell) for cell in re.findall(r"\| ([\d.e+-]+) (?=\|)", verified)]
    text_recipes = {name for name, recipe in RECIPES.items() if recipe.kind == "text"}
    assert text_recipes & set(re.findall(r"`([\w-]+/[\w.-]+)`", refused)) <= {"ptb/small-relu"}, "ill-conditioned"
    assert len(differences) >= 3 * (len(text_recipes) - 1)
    assert max(differences) <= TOLERANCE
    assert "needs a run on text" in refused


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("ptb/awd-lstm-doc", "hf"),
        ("ptb/small-char", "torch"),
        ("japanese/subwords", "hf"),
        ("ptb/small-adaptive-sigsoftmax", "onnx"),
    ],
)
def test_a_row(name, target, tmp_path, monkeypatch):
    pytest.importorskip({"onnx": "onnxruntime", "hf": "transformers", "torch": "torch"}[target])
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    row = SCRIPT["row_of"](name, RECIPES[name], tmp_path, (target,))
    assert row.refusal == ""
    assert row.differences[target] < 1e-4


@pytest.mark.parametrize("name", ["music/nottingham-gru", "translation/small-en-ja", "series/table"])
def test_a_refusal(name, tmp_path):
    row = SCRIPT["row_of"](name, RECIPES[name], tmp_path)
    assert row.differences == {}
    assert re.fullmatch(
        r"RUN is a run on \w+, and this command needs a run on text; use `elman [^`]+ RUN`", row.refusal
    )


@pytest.mark.slow
def test_lab_scale_keeps_what_a_recipe_is_made_of():
    """The same parts, in the same order, with ties where they were, of few weights."""
    for name, recipe in RECIPES.items():
        if recipe.kind != "text":
            continue
        small = SCRIPT["lab_scale"](recipe)
        assert type(small.model.core) is type(recipe.model.core), name
        assert type(small.model.output.choice) is type(recipe.model.output.choice)
        assert small.model.output.activation == recipe.model.output.activation
        assert small.data.tokenisation == recipe.data.tokenisation
        words = ["".join(chr(97 + (number >> 5 * place) % 26) for place in range(3)) for number in range(150)]
        model = elman.build_model(small.model, 150, [1] * 150, words)
        assert sum(parameter.numel() for parameter in model.parameters()) < 300_000, name


@pytest.mark.slow
def test_the_same_figures_three_ways(tmp_path_factory):
    for package in ("onnxruntime", "transformers"):
        pytest.importorskip(package, reason="needs elman[onnx] and elman[hf]")
    run = TextRun(trained("words", tmp_path_factory))
    tokens = run.corpus().split("test").tokens[:60]
    rows = runpy.run_path(str(BENCHMARKS / "three_ways.py"))["compared"](run, tokens)
    assert [row["way"] for row in rows] == ["elman", "onnxruntime", "transformers"]
    np.testing.assert_allclose([row["perplexity"] for row in rows], rows[0]["perplexity"], rtol=1e-5)
    assert all(row["largest_difference"] < 1e-4 for row in rows)
