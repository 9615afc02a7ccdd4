import pytest

from elman.config.text import TextOptions
from elman.data.text.tokeniser import spelt, word_slices, word_starts

CHARACTERS = TextOptions(tokenisation="characters")


def cut(text, *, eos=True):
    tokens = [*text, "<eos>"] if eos else [*text]
    return ["".join(tokens[part]) for part in word_slices(word_starts(tokens, CHARACTERS))]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("to be", ["to ", "be<eos>"]),
        ("  to   be ", ["  to   ", "be <eos>"]),
        ("a", ["a<eos>"]),
        ("", ["<eos>"]),
        ("  ", ["  <eos>"]),
    ],
)
def test_a_word_of_characters_has_its_boundary(text, words):
    assert cut(text) == words


def test_without_an_end_the_last_word_has_none():
    assert cut("to be", eos=False) == ["to ", "be"]


def test_words_are_words():
    tokens = ["to", "be", "<eos>"]
    assert word_starts(tokens, TextOptions()) == [True] * 3
    assert word_slices([]) == []


def test_what_is_spelt():
    assert spelt([*" to ", "<eos>"], CHARACTERS) == "to"
    assert spelt(["<eos>"], CHARACTERS) == "<eos>"
