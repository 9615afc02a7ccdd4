"""A small trained model of words and one of characters, and things to ask them about."""

import msgspec
import pytest

import toy
from elman.data.options import TextOptions
from elman.experiment import Experiment

RAW = TextOptions(tokenisation="raw", min_count=2)
CHARACTERS = TextOptions(tokenisation="characters")


@pytest.fixture(scope="package", params=[RAW, CHARACTERS], ids=["words", "characters"])
def run(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMAN_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        out = tmp_path_factory.mktemp("runs") / "run"
        recipe = toy.recipe(epochs=1)
        recipe = msgspec.structs.replace(recipe, data=msgspec.structs.replace(recipe.data, text=request.param))
        experiment = Experiment(recipe, out, data=toy.write_corpus(out.parent / "corpus"))
        experiment.train()
        experiment.finish()
        yield out


@pytest.fixture
def words_run(run):
    if "characters" in (run / "recipe.toml").read_text():
        pytest.skip("of words")
    return run


@pytest.fixture
def text(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("w1 w12 w3\nw3 w1\n")
    return file


@pytest.fixture
def nbest(tmp_path):
    file = tmp_path / "nbest.tsv"
    file.write_text("b\t-1\tw1 w2 w3\nb\t0\tw3 w3\na\t-2\tw5 w6\na\t-2\tw6\na\t-3\t\n")
    return file
