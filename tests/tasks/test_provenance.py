"""What a run records of its data and recipe: it can be trained again, and what has changed since is refused."""

import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from elman import config
from elman.errors import UserError
from elman.tasks.experiment import Experiment
from elman.tasks.open import open_run
from support import music_runs, text_runs
from support.commands import refusal
from support.text_runs import same_files


def text(folder):
    return text_runs.write_corpus(folder, {"train": 40, "valid": 10, "test": 10}), text_runs.recipe(epochs=1)


def music(folder):
    folder.mkdir()
    np.savez(folder / "rolls.npz", **music_runs.arrays())
    return folder / "rolls.npz", music_runs.recipe(epochs=1)


KINDS = {"text": text, "music": music}


@pytest.fixture(params=KINDS)
def run(request, tmp_path):
    """A run that was trained on data given by --data, and that data."""
    data, recipe = KINDS[request.param](tmp_path / "the data")
    Experiment(recipe, tmp_path / "run", data=data).train()
    return tmp_path / "run", data


def change(data):
    if data.is_dir():
        (data / "test.txt").write_text("w1 w2\n")
    else:
        arrays = music_runs.arrays()
        np.savez(data, **arrays | {"test_roll": np.roll(arrays["test_roll"], 1, axis=1)})


MARK = b"\xef\xbb\xbf"


def test_a_byte_order_mark_may_be_removed(tmp_path):
    lines = text_runs.write_corpus(tmp_path / "lines", {"train": 60, "valid": 0, "test": 0}) / "train.txt"
    data, run = tmp_path / "text.txt", tmp_path / "run"
    data.write_bytes(MARK + lines.read_bytes())
    Experiment(text_runs.recipe(epochs=1), run, data=data).train()
    before = open_run(run).evaluate()
    data.write_bytes(lines.read_bytes())
    assert open_run(run).evaluate() == before
    data.write_bytes(MARK + lines.read_bytes() + b"w1\n")
    with pytest.raises(UserError, match="changed since"):
        open_run(run).evaluate()


def again(run, **more):
    experiment = Experiment(config.load_recipe(run / "recipe.toml"), run.parent / "again", **more)
    experiment.train()
    return experiment.out


def test_the_recipe_of_a_run_repeats_it(run, monkeypatch):
    out, data = run
    monkeypatch.chdir("/")
    found = config.load_recipe(out / "recipe.toml").data
    assert (found.corpus, found.digest) == (str(data), open_run(out).facts["digest"])
    assert same_files(again(out), out)


def test_data_that_has_changed_is_refused(run, capsys):
    out, data = run
    was = open_run(out).corpus().digest
    change(data)
    for refused in (lambda: again(out), lambda: open_run(out).evaluate(), lambda: open_run(out).adaptation_source()):
        with pytest.raises(UserError, match=rf"changed since.* was {was[:12]}|data\.digest is {was[:12]}"):
            refused()
    line = refusal(capsys, "evaluate", out)
    assert line.endswith(f"restore it, or give --data '{data}' to use it as other data")
    assert open_run(out).corpus(data).digest != was
    assert config.load_recipe(again(out, data=data) / "recipe.toml").data.digest != was


def test_data_that_is_gone_is_named(run, capsys):
    out, data = run
    shutil.move(data, data.parent / "elsewhere")
    line = refusal(capsys, "evaluate", out)
    assert f"{out}/data.json names the data {data}, which is not there; give the place where it is now" in line
    line = refusal(capsys, "train", out / "recipe.toml", "--out", out.parent / "again")
    assert f'the recipe has data.corpus = "{data}", which is not there' in line
    before = config.load_recipe(out / "recipe.toml")
    moved = data.parent / "elsewhere"
    Experiment(before, out, data=moved, resume=True).train()
    assert open_run(out).corpus().source == str(moved)
    assert config.load_recipe(out / "recipe.toml").data.corpus == str(moved)


def test_a_recipe_that_was_edited_is_refused_and_a_title_is_not(run, capsys):
    out, _ = run
    recipe = out / "recipe.toml"
    written = recipe.read_text()
    for old, new in (
        (" = 88", " = 93"),
        (" = 93", " = 88"),
        ('eos = "line"', 'eos = "none"'),
        ("size = 8", "size = 9"),
    ):
        if old not in written:
            continue
        recipe.write_text(written.replace(old, new))
        assert "restore the recipe of the run" in refusal(capsys, "evaluate", out)
    recipe.write_text(written.replace('activation = "softmax"', 'activation = "relu"'))
    line = refusal(capsys, "evaluate", out)
    assert line == (
        f'elman: {recipe}: model.output.activation is "relu", but the model was trained with "softmax"; restore the'
        " recipe of the run"
    )
    recipe.write_text(written.replace('title = "toy', 'title = "another'))
    open_run(out).evaluate()


def test_a_set_key_of_the_data_makes_other_data(tmp_path):
    path, recipe = tmp_path / "recipe.toml", text_runs.recipe()
    data = msgspec.structs.replace(recipe.data, corpus="/there", digest="0" * 64)
    path.write_text(config.dump_recipe(msgspec.structs.replace(recipe, data=data)))
    (tmp_path / "derived.toml").write_text('base = "recipe.toml"\ntitle = "derived"\ndata.min_count = 2\n')
    assert config.load_recipe(path).data.digest == "0" * 64
    assert config.load_recipe(path, ["training.epochs=7", "data.evaluation.streams=2"]).data.digest == "0" * 64
    assert config.load_recipe(path, ["data.corpus=ptb"]).data.digest is None
    assert config.load_recipe(tmp_path / "derived.toml").data.digest is None


GRAMMAR = {"sentences": 60, "valid": 20, "test": 20, "max_depth": 1}


@pytest.mark.slow
def test_a_generated_text_is_named_by_its_grammar(tmp_path):
    recipe = text_runs.recipe(epochs=1)
    data = msgspec.structs.replace(recipe.data, grammar=config.GrammarOptions(**GRAMMAR))
    recipe = msgspec.structs.replace(recipe, data=data)
    first = Experiment(recipe, tmp_path / "first")
    first.train()
    found = config.load_recipe(tmp_path / "first" / "recipe.toml").data
    assert (found.corpus, found.digest) == (None, first.task.digest)
    assert same_files(again(tmp_path / "first"), tmp_path / "first")
    other = text_runs.write_corpus(tmp_path / "other")
    Experiment(recipe, tmp_path / "second", data=other).train()
    assert open_run(tmp_path / "second").corpus().source == str(other)
    assert Experiment(config.load_recipe(tmp_path / "second" / "recipe.toml"), tmp_path / "x").task.source == str(other)
    assert Experiment(recipe, tmp_path / "second", resume=True).task.source == str(other)


def test_names_that_a_model_file_cannot_have_are_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    corpus = text_runs.write_corpus(tmp_path / "corpus", {"train": 40, "valid": 10, "test": 10})
    (tmp_path / "recipe.toml").write_text(config.dump_recipe(text_runs.recipe(epochs=1)))
    command = ["train", f"{tmp_path}/recipe.toml", "--data", "~/corpus"]
    line = refusal(capsys, *command, "--out", f"{tmp_path}/\udcff")
    assert line.endswith(r"\xff is not UTF-8; choose another name")
    experiment = Experiment(text_runs.recipe(epochs=1), Path("~/run"), data="~/corpus")
    assert (experiment.out, experiment.task.source) == (tmp_path / "run", str(corpus))
