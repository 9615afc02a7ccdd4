"""Words of subwords with their ends: values by hand, sums, every way of scoring, and the ends of minimal pairs."""

import json
import math

import msgspec
import numpy as np
import pytest

from elman import config
from elman.cli import main
from elman.config.text import TextOptions
from elman.data.text.reading import Sentence
from elman.data.text.tokeniser import Tokeniser, word_starts
from elman.evaluation.minimal_pairs import BOUNDARY, sentence_log_probs
from elman.evaluation.word_ends import spaces_of, with_word_ends
from elman.tasks.experiment import Experiment
from elman.tasks.text.comparison import read_words
from elman.tasks.text.model import sections_of
from elman.tasks.text.run import TextRun
from support import text_runs

OPTIONS = TextOptions(tokenisation="subwords")
TEXT = "the cat sat on the cats\nthe catch of a cat is a dog's dog\nthat cat  ran\n"


def words(tokens, space, options=OPTIONS):
    """The sums over the words of tokens whose log-probabilities are -1, -2, -4 ..."""
    tokeniser, size = Tokeniser(options), len(tokens)
    unknown, ids = [False] * size, np.zeros(size, dtype=np.int32)
    sentence = Sentence(tokens, word_starts(tokens, options), unknown, frozenset(), tokens, ids, 1)
    log_probs = -(2.0 ** np.arange(size))
    found = with_word_ends(log_probs, np.array(space), sentence, tokeniser)
    assert found.sum() == log_probs.sum()
    return [float(found[word.read].sum()) for word in sentence.words(tokeniser)]


def test_the_end_of_a_word_moves_to_it():
    assert words(["ca", "t", "▁sat", "<eos>"], [9, 9, -0.25, 9]) == [-1 - 2 - 0.25, -4 + 0.25 - 8]


def test_white_space_of_its_own_ends_the_word_before_it():
    # The rest of its log-probability, that it is no beginning of a word, belongs to the word that follows.
    assert words(["cat", "▁", "sat"], [9, -0.25, 9]) == [-1 - 0.25, -2 + 0.25 - 4]
    assert words(["cat", "▁", "▁", "▁sat"], [9, -0.25, 9, 9]) == [-1 - 0.25, -2 - 4 + 0.25 - 8]


def test_white_space_before_the_first_word_belongs_to_it():
    assert words(["▁", "▁cat", "▁sat"], [9, 9, -0.25]) == [-1 - 2 - 0.25, -4 + 0.25]


def test_a_word_of_which_nothing_is_read_has_no_end():
    """`@@` is left out: the end of `cat` moves once."""
    pieces, read = ["cat", "@@", "▁sat"], ["cat", "▁sat"]
    sentence = Sentence(pieces, [True] * 3, [False] * 3, frozenset({1}), read, np.zeros(2, dtype=np.int32), 1)
    found = with_word_ends(np.array([-1.0, -2.0]), np.array([9, -0.25]), sentence, Tokeniser(OPTIONS))
    assert found.tolist() == [-1.25, -1.75]


def test_what_is_not_the_end_of_a_word_stays():
    assert words(["▁cat", "▁", "<eos>"], [-0.25] * 3) == [-7]
    assert words(["cat", "<eos>", "▁sat"], [-0.25] * 3) == [-3, -4]
    assert words(["cat", "▁sat"], [-math.inf] * 2) == [-1, -2]
    characters = TextOptions(tokenisation="characters")
    assert words(["a", " ", "b"], [-0.25] * 3, characters) == [-3, -4]


def test_only_subwords_have_spaces():
    assert spaces_of(["a", "▁a", "<eos>", "▁", "<0x20>", "b▁"], OPTIONS) == (1, 3, 4)
    assert spaces_of(["a", " "], TextOptions(tokenisation="characters")) == ()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("subwords")
    (folder / "text.txt").write_text(TEXT * 40)
    (folder / "asked.txt").write_text(TEXT)
    raw = msgspec.to_builtins(text_runs.recipe(epochs=1, window={"length": 10}), str_keys=True)
    subwords = {"size": 300, "coverage": 1.0}
    raw["data"] = {"kind": "text", "tokenisation": "subwords", "subwords": subwords, "test_fraction": 0.2}
    experiment = Experiment(config.parse_recipe(raw, "toy"), folder / "run", data=folder / "text.txt")
    experiment.train()
    return folder / "run"


def rows(capsys, run, *arguments):
    assert main(["score", str(run), *map(str, arguments), "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("how", [(), ("--document",), ("--adapt", "--rule", "sgd", "--lr", "0.01")])
def test_words_sum_to_their_sentence(capsys, run, how):
    asked = run.parent / "asked.txt"
    words, sentences = (rows(capsys, run, asked, "--by", by, *how) for by in ("word", "sentence"))
    for sentence in sentences:
        bits = [row["surprisal"] for row in words if row["sentence"] == sentence["sentence"]]
        assert sum(bits) == pytest.approx(sentence["surprisal"], abs=1e-4)


def test_a_word_is_as_probable_as_its_pieces_with_any_white_space_after_them(capsys, run):
    loaded = TextRun(run)
    (sentence,) = loaded.reader("").sentences(["the cat sat on the cats\n"])
    begins = [number for number, begun in enumerate(sentence.starts) if begun]
    open_ended = [np.append(sentence.ids[:begin], BOUNDARY) for begin in begins[1:]]
    inputs = [np.where(ids == BOUNDARY, 0, ids) for ids in open_ended]
    until = sentence_log_probs(loaded.model, open_ended, loaded.first, inputs=inputs, boundaries=loaded.spaces)
    expected = -np.diff(until, prepend=0.0) / math.log(2)
    found = [row["surprisal"] for row in rows(capsys, run, run.parent / "asked.txt", "--by", "word")]
    np.testing.assert_allclose(found[: len(expected)], expected, atol=1e-4)


def test_regions_are_the_sums_of_their_words(capsys, run):
    path = run.parent / "regions.txt"
    path.write_text("the cat | sat on | the cats\n")
    words = rows(capsys, run, path, "--by", "word", "--regions", "|")
    regions = rows(capsys, run, path, "--by", "region", "--regions", "|")
    for region in regions:
        bits = [row["surprisal"] for row in words if row["region"] == region["region"]]
        assert region["surprisal"] == pytest.approx(sum(bits), abs=1e-4)


def test_runs_are_compared_by_words_with_their_ends(capsys, run):
    """The words of a text have the log-probabilities that `elman score --by word` gives them."""
    loaded = TextRun(run)
    found = read_words(loaded, sections_of(run.parent / "asked.txt", "all", loaded.options))
    scored = rows(capsys, run, run.parent / "asked.txt", "--by", "word", "--document")
    assert [word.text for word in found.words] == [row["word"] for row in scored] == TEXT.split()
    np.testing.assert_allclose(-found.log_probs / math.log(2), [row["surprisal"] for row in scored], atol=1e-4)
