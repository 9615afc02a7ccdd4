"""elman analyze words, trajectory and letters, from the command line to the page."""

import html
import json
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from elman import config
from elman.analysis import letters
from elman.analysis.letters import places_in_words
from elman.cli import main
from elman.drawing.style import canvas, svg
from elman.tasks.experiment import Experiment
from support import text_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run on words and one on characters."""
    folder = tmp_path_factory.mktemp("states")
    text = text_runs.write_corpus(folder / "text")
    plain = msgspec.to_builtins(text_runs.recipe(epochs=1), str_keys=True)
    for name in ("words", "characters"):
        plain["data"]["tokenisation"] = {"words": "raw", "characters": "characters"}[name]
        Experiment(config.parse_recipe(plain, "toy"), folder / name, data=text).train()
    return folder


def analysed(capsys, *arguments, status=0):
    found = main(["analyze", *map(str, arguments)])
    captured = capsys.readouterr()
    assert found == status, captured.err
    return captured.out if status == 0 else captured.err


@pytest.mark.slow
def test_words_are_clustered_and_drawn(runs, capsys):
    found = json.loads(analysed(capsys, "words", runs / "words", "--top", "6", "--groups", "3", "--json"))
    assert len(found["words"]) == 6
    assert len(found["merges"]) == 5
    assert sorted(found["given"]) == sorted(one["word"] for one in found["words"])
    assert len({one["group"] for one in found["words"]}) <= 3
    page = (runs / "words/words.html").read_text()
    assert all(html.escape(one["word"]) in page for one in found["words"])
    chosen = [one["word"] for one in found["words"][:2]]
    analysed(capsys, "words", runs / "words", "--words", *chosen, "--layer", "0", "--out", runs / "two.html")
    assert "the input vectors" in (runs / "two.html").read_text()
    assert "not in the vocabulary" in analysed(capsys, "words", runs / "words", "--words", "zebra", status=2)
    assert "lower --least" in analysed(capsys, "words", runs / "words", "--least", "9999", status=2)
    assert "0 (the input vectors) to 2" in analysed(capsys, "words", runs / "words", "--layer", "3", status=2)
    assert "--method ward" in analysed(
        capsys, "words", runs / "words", "--method", "ward", "--metric", "cosine", status=2
    )


@pytest.mark.slow
def test_paths_of_sentences_are_drawn_together(runs, capsys):
    found = json.loads(analysed(capsys, "trajectory", runs / "words", "w1 w2 w3", "w1 w4", "--json"))
    first, second = found["sentences"]
    assert first["tokens"][:3] == ["w1", "w2", "w3"]
    assert first["components"][0] == pytest.approx(second["components"][0], abs=1e-5)
    assert sum(found["shares"]) <= 1 + 1e-9
    assert "Together" in (runs / "words/trajectory.html").read_text()
    assert "no token" in analysed(capsys, "trajectory", runs / "words", "", status=2)
    assert "a single token" in analysed(capsys, "trajectory", runs / "words", "w1", "--max-tokens", "1", status=2)


@pytest.mark.slow
def test_surprisal_by_place_needs_characters(runs, capsys):
    found = json.loads(analysed(capsys, "letters", runs / "characters", "--json"))
    assert [one["label"] for one in found["places"]][:2] == ["1", "2"]
    assert 0 <= found["area"] <= 1
    assert "runs on characters" in analysed(capsys, "letters", runs / "words", status=2)


def test_letters_far_into_a_word_are_one_place(monkeypatch):
    """Ten letters of 1 to 10 bits, a space and one letter of 3 bits: the eighth place holds the last three."""
    bits = np.array([*range(1, 11), 5.0, 3.0])
    monkeypatch.setattr(letters, "token_log_probs", lambda *_: -bits * np.log(2))
    vocabulary = SimpleNamespace(words=[*"abcdefghij", " ", "k"])
    run = SimpleNamespace(options=SimpleNamespace(tokenisation="characters"), vocabulary=vocabulary, model=None)
    found = letters.by_place(run, SimpleNamespace(tokens=range(12)))
    assert [one.label for one in found.places] == [*map(str, range(1, 8)), "8 and later"]
    assert [one.letters for one in found.places] == [2, 1, 1, 1, 1, 1, 1, 3]
    assert [one.bits for one in found.places] == pytest.approx([2, 2, 3, 4, 5, 6, 7, 9])
    # Of the first letters, 1 and 3 bits, the latter exceeds one of the nine others, 2, and equals one, 3.
    assert found.area == pytest.approx(1.5 / 18)


def test_signs_that_combine_continue_a_word():
    assert places_in_words("नमस्ते दु e\u0301t \u0301a.").tolist() == [1, 2, 3, 4, 5, 6, 0, 1, 2, 0, 1, 2, 3, 0, 0, 1, 0]


def test_letters_that_the_font_of_the_figures_lacks_are_drawn_without_warnings(recwarn):
    figure, axes = canvas("narrow")
    axes.set_title("न猫")
    assert "न猫" in svg(figure, "letters", "Letters", "of two scripts")
    assert not recwarn.list
