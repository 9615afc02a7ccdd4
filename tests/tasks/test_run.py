"""A run folder is opened as what it is."""

import pytest

from elman.config.toml import find
from elman.errors import UserError
from elman.kinds.music.run import MusicRun
from elman.kinds.pairs.run import PairRun
from elman.tasks.open import open_run
from elman.tasks.run import present
from elman.tasks.text.run import TextRun

RECIPES = {TextRun: "shakespeare/demo.toml", MusicRun: "music/nottingham-gru.toml", PairRun: "headlines/encdec.toml"}
NAMES = {TextRun: "text", MusicRun: "music", PairRun: "pairs"}


@pytest.fixture(params=RECIPES)
def kind_and_folder(request, tmp_path):
    """A folder that holds the recipe of a kind of run, and nothing else."""
    (tmp_path / "recipe.toml").write_bytes(find(RECIPES[request.param]).read_bytes())
    return request.param, tmp_path


def test_a_run_of_another_kind_is_refused(kind_and_folder):
    kind, folder = kind_and_folder
    for other in RECIPES.keys() - {kind}:
        with pytest.raises(UserError) as refused:
            other(folder)
        said = f"is a run on {NAMES[kind]}; here a run on {NAMES[other]} is needed"
        assert str(refused.value) == f"{folder} {said}"


def test_what_the_folder_lacks_is_said_on_opening(kind_and_folder):
    """Music is read without a vocabulary of its own: there the model is the first thing that is missing."""
    kind, folder = kind_and_folder
    with pytest.raises(UserError, match=r"model\.safetensors" if kind is MusicRun else "vocabulary"):
        open_run(folder).model  # noqa: B018 - asking for it loads it


def test_data_are_there_where_a_file_a_pattern_or_the_beginning_of_names_is(tmp_path, monkeypatch):
    for name in ("train.de", "train.en", "valid.de", "valid.en", "test.de", "test.en", "a1.txt", "a2.txt"):
        (tmp_path / name).write_text("a b\n")
    for source in (tmp_path, tmp_path / "a1.txt", tmp_path / "a*.txt", tmp_path / "train"):
        assert present(str(source), "it has data") == str(source)
    with pytest.raises(UserError, match="it has data, which is not there"):
        present(str(tmp_path / "none"), "it has data")
