"""elman analyze words, trajectory, letters and units, from the command line to the page."""

import html
import json
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import torch

import elman
from elman import config
from elman.analysis import letters
from elman.analysis.letters import places_in_words
from elman.analysis.units import SETTLING, places_of, together, units_on
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
def test_words_are_clustered_and_drawn(runs, capsys, drawn):
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
def test_paths_of_sentences_are_drawn_together(runs, capsys, drawn):
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


def test_letters_that_the_font_of_the_figures_lacks_are_drawn_without_warnings(recwarn, drawn):
    figure, axes = canvas("narrow")
    axes.set_title("न猫")
    assert "न猫" in svg(figure, "letters", "Letters", "of two scripts")
    assert not recwarn.list


@pytest.mark.slow
def test_units_are_searched_by_number_phrase_and_pattern(runs, capsys, tmp_path):
    run = elman.load(runs / "words")
    corpus = run.corpus()
    tokens = corpus.split("test").tokens
    with torch.inference_mode():
        trace, _ = run.model.trace(torch.tensor([run.first, *tokens[:-1]])[:, None], run.begin())
    states = trace.raw[-1][1:, 0].numpy()
    first = min(SETTLING, len(states) // 4)
    kept = states[first:]
    values = (states - kept.mean(0)) / kept.std(0)
    found = json.loads(analysed(capsys, "units", runs / "words", "--unit", "1", "--top", "2", "--json"))
    (place, other), word = found["places"]["unit 1"], run.vocabulary.words[tokens[first + values[first:, 1].argmax()]]
    assert place["tokens"][place["start"]] == word
    at = place["first"] + place["start"]
    assert at == first + values[first:, 1].argmax()
    np.testing.assert_allclose(place["values"][place["start"]], values[at, 1], atol=1e-3)
    assert abs(other["first"] + other["start"] - at) >= 8

    words = [run.vocabulary.words[token] for token in tokens[first : first + 12] if token != run.first][:4]
    phrase = f"{words[0]} [{words[1]} {words[2]}] {words[3]}"
    found = json.loads(analysed(capsys, "units", runs / "words", phrase, "--top", "3", "--threshold", "0.2", "--json"))
    ids = [run.vocabulary.ids[word] for word in words]
    with torch.inference_mode():
        trace, _ = run.model.trace(torch.tensor([run.first, *tokens[:first], *ids])[:, None], run.begin())
    along = (trace.raw[-1][-4:, 0].numpy() - kept.mean(0)) / kept.std(0)
    on = along >= 0.2
    switch = on[1] & on[2] & ~on[0] & ~on[3]
    assert [one["switches"] for one in found["units"]] == sorted(one["switches"] for one in found["units"])[::-1]
    for one in found["units"]:
        assert one["switches"] == switch[one["unit"]]
        np.testing.assert_allclose(one["mean"], along[1:3, one["unit"]].mean(), atol=1e-3)
    assert sum(one["switches"] for one in found["units"]) == min(3, switch.sum())

    found = json.loads(analysed(capsys, "units", runs / "words", "--pattern", words[1], "--top", "2", "--json"))
    matching = tokens[: len(values)] == run.vocabulary.ids[words[1]]
    apart = values[matching].mean(0) - values[~matching].mean(0)
    assert [one["unit"] for one in found["units"]] == np.argsort(-apart)[:2].tolist()
    page = tmp_path / "units.html"
    analysed(capsys, "units", runs / "characters", "--unit", "0", "--out", page)
    assert '<span class="word"' in page.read_text()
    for wrong, says in (
        ([], "nothing to search for"), (["--unit", "999"], "has the units 0 to"), (["--pattern", "("], "no regular"),
        (["--pattern", "zebra"], "no token matches"), (["a [b"], "one range between"), (["[ ] a"], "one range between"),
    ):  # fmt: skip
        assert says in analysed(capsys, "units", runs / "words", *wrong, status=2)


def test_places_where_units_are_on_together():
    values = np.array([[0, 2, 0], [2, 2, 0], [2, 2, 0], [0, 0, 2]], np.float32)
    assert together(values, [0, 1], 2, 1.0).round().tolist() == [1, 2, 0]
    assert together(values, [0, 1], 2, 1.0)[0] < 1.5
    assert places_of(np.array([1, 3, 2, 3], np.float32), 2, 2) == [1, 3]
    assert [one.unit for one in units_on(values, 1, 3, 1.0)] == [0, 1, 2]
    assert [one.switches for one in units_on(values, 1, 3, 1.0)] == [True, False, False]
