"""Runs as models for others: complete for every kind of data, measured as in training, and nothing of this machine."""

import json
import shutil
import zipfile

import msgspec
import pytest

import elman
from elman import config
from elman.config.text import SubwordOptions
from elman.data.grammar.reading import FOLDER
from elman.errors import UserError
from elman.export import publishing
from elman.export.publishing import About, publish
from elman.tasks.experiment import Experiment
from support import every_kind, text_runs, treebank
from support.parameters import slow_except

LINES = "the cat sees a dog near the house\nlions sleep and the old king dreams of ships\n"

SUBWORDS = {"kind": "text", "tokenisation": "subwords", "subwords": {"size": 300}, "test_fraction": 0.2}


def with_data(recipe, **changes):
    return msgspec.structs.replace(recipe, data=msgspec.structs.replace(recipe.data, **changes))


def trained(recipe, folder, data=None):
    """A run with results."""
    experiment = Experiment(recipe, folder, data=data)
    experiment.train()
    experiment.finish()
    return elman.load(folder)


def written(folder, text):
    (folder / "text.txt").write_text(text)
    return folder / "text.txt"


def pairs_in_subwords(folder):
    recipe = every_kind.KINDS["pairs"][1](folder)
    return with_data(recipe, tokenisation="subwords", subwords=SubwordOptions(size=300), max_source=40)


KINDS = {
    **every_kind.KINDS,
    "trees": (lambda folder: treebank.write(folder / "trees.mrg"), lambda _: treebank.recipe(epochs=1)),
    "subwords": (
        lambda folder: written(folder, LINES * 60),
        lambda _: config.parse_recipe(raw_recipe() | {"data": SUBWORDS}, "toy"),
    ),
    "pairs in subwords": (every_kind.write_pairs, pairs_in_subwords),
}


def raw_recipe():
    return msgspec.to_builtins(text_runs.recipe(epochs=1), str_keys=True)


@pytest.fixture(params=slow_except(("tags", "trees"), tuple(KINDS)))
def run(request, tmp_path):
    if "subwords" in request.param:
        pytest.importorskip("sentencepiece")
    write, recipe = KINDS[request.param]
    return trained(recipe(tmp_path), tmp_path / "run", write(tmp_path))


@pytest.fixture(scope="module")
def skipping(tmp_path_factory):
    """A folder with a text and a run on it whose results leave out the first token."""
    folder = tmp_path_factory.mktemp("skipping")
    recipe = text_runs.recipe(epochs=1)
    recipe = with_data(recipe, evaluation=msgspec.structs.replace(recipe.data.evaluation, skip_first=True))
    trained(recipe, folder / "run", text_runs.write_corpus(folder / "corpus"))
    return folder


@pytest.fixture
def own(skipping, tmp_path):
    """A copy of that run, which knows its text in another folder."""
    folder = shutil.copytree(skipping, tmp_path / "own")
    facts = json.loads((folder / "run/data.json").read_text())
    (folder / "run/data.json").write_text(json.dumps(facts | {"source": str(folder / "corpus")}))
    return elman.load(folder / "run")


def names_of(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.slow
def test_every_kind_is_complete(run, tmp_path):
    """The model is opened from what was kept, and its rounded weights have almost the results of the training."""
    made = publish(run, "tiny", tmp_path / "new", About("MIT"), "half", lambda _: None)
    left = {"environment.json", "checkpoint.safetensors"}
    ours = {name for name in names_of(run.path) if name.endswith((".json", ".jsonl", ".tsv", ".model", ".safetensors"))}
    assert names_of(made.folder) == ours - left | {"recipe.toml", "README.md"}
    assert [one.split for one in made.after] == ["valid", "test"]
    for before, after in zip(made.before, made.after, strict=True):
        assert after.tokens == before.tokens
        assert after.nll == pytest.approx(before.nll, rel=0.01)
    assert elman.load(made.folder).inputs.digest == run.inputs.digest


def test_other_files_of_a_run_are_left_out(own, tmp_path):
    """Such as trackers, measurements and the user leave there: they may name folders, accounts or machines."""
    others = {"tracking.json", "measured-perplexity.json", "diverged.json", "tried.json", "scores.tsv"}
    for name in others:
        (own.path / name).write_text(f'{{"place": "{tmp_path}"}}')
    made = publish(own, "tiny", tmp_path / "new", About("MIT"))
    assert not names_of(made.folder) & others
    with zipfile.ZipFile(made.archive) as archive:
        assert {name.partition("/")[2] for name in archive.namelist()} == names_of(made.folder) == {*made.model.files}


def test_results_do_not_name_the_place_of_the_data(own, tmp_path):
    """As those of a plug-in may."""
    rows = json.loads((own.path / "results.json").read_text())
    (own.path / "results.json").write_text(json.dumps([row | {"data": own.source} for row in rows]))
    made = publish(own, "tiny", tmp_path / "new", About("MIT"))
    assert json.loads((made.folder / "results.json").read_text()) == rows


def test_figures_of_a_model_that_adapts_are_not_those_of_the_model(own, tmp_path):
    rows = json.loads((own.path / "results.json").read_text())
    adapted = [row | {"method": "dynamic", "nll": 0.5} for row in rows]
    (own.path / "results.json").write_text(json.dumps(rows + adapted))
    made = publish(own, "tiny", tmp_path / "new", About("MIT"))
    assert json.loads((made.folder / "results.json").read_text()) == rows
    assert [one.nll for one in made.before] == [row["nll"] for row in rows]


def test_a_kind_of_data_whose_files_are_not_kept_is_refused(own, tmp_path, monkeypatch):
    """As of a plug-in, which may keep what its models read in a file of its own."""
    monkeypatch.setattr(publishing, "SYMBOLS", ())
    with pytest.raises(UserError, match=r"new/tiny/vocabulary\.tsv"):
        publish(own, "tiny", tmp_path / "new", About("MIT"))
    assert names_of(tmp_path) == {"own"}


def test_rounded_weights_are_measured_on_the_tokens_of_the_training(own, tmp_path):
    made = publish(own, "tiny", tmp_path / "new", About("MIT"), "half", lambda _: None)
    whole = elman.load(own.path).evaluate()
    for before, after in zip(made.before, made.after, strict=True):
        assert after.tokens == before.tokens
        assert after.nll == pytest.approx(before.nll, rel=1e-4)
    assert made.after[1].tokens == whole.tokens - 1


@pytest.mark.parametrize("how", ["changed", "gone"])
def test_other_data_is_not_measured(own, tmp_path, how):
    place, said = tmp_path / "own/corpus", []
    if how == "gone":
        shutil.rmtree(place)
    else:
        (place / "test.txt").write_text("w1 w2 w3\n" * 9)
    made = publish(own, "tiny", tmp_path / "new", About("MIT"), "half", said.append)
    (line,) = said
    assert line.startswith("not evaluated: ")
    assert str(place) in line
    assert ("has changed since" in line) == (how == "changed")
    assert made.after == []
    assert len(made.before) == 2


def test_a_grammar_is_named_without_its_place(tmp_path, tmp_path_factory):
    shutil.copyfile(FOLDER / "elman-1991.grammar", tmp_path / "own.grammar")
    options = config.GrammarOptions(rules=str(tmp_path / "own.grammar"), sentences=60, valid=20, test=20)
    run = trained(with_data(text_runs.recipe(epochs=1), grammar=options), tmp_path / "run")
    made = publish(run, "tiny", tmp_path / "new", About("MIT"))
    here = str(tmp_path_factory.getbasetemp()).encode()
    assert here in (run.path / "model.safetensors").read_bytes()
    for path in made.folder.iterdir():
        assert here not in path.read_bytes(), path
    opened = elman.load(made.folder)
    assert opened.recipe.data.grammar == msgspec.structs.replace(options, rules="own.grammar")
    assert opened.model is not None
