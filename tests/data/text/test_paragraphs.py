"""A paragraph in each of many scripts: its words, marks and sentences as counted by hand, written back as it was."""

import pytest

from elman.config.text import TextOptions
from elman.data.text.facts import facts_of
from elman.data.text.patterns import characters_of
from elman.data.text.tokeniser import Tokeniser, detokenise
from elman.tasks.proposal.text import reading
from support.paragraphs import SPACED, UNSPACED, assert_read_and_restored, begins_with_a_mark, sentences_in

RAW, CHARACTERS = TextOptions(tokenisation="raw"), TextOptions(tokenisation="characters", eos="exact")
MARKS_APART = {"Emoji", "Ge'ez, words divided by marks"}
"""What is not recognised as words between blanks by a short sample."""


@pytest.mark.parametrize("script", SPACED)
def test_words_and_marks_are_those_counted_by_hand(script):
    text, words, marks, sentences = SPACED[script]
    tokens = Tokeniser(RAW).encode(text)
    found = sum(any(letter.isalnum() for letter in token) for token in tokens)
    assert (found, len(tokens) - found, sentences_in(text)) == (words, marks, sentences)
    assert not any(map(begins_with_a_mark, tokens))
    assert detokenise(tokens, RAW) == text
    if script not in MARKS_APART:
        assert reading(facts_of(f"{text}\n" * 60, 40_000)).load().data.tokenisation == "raw"


@pytest.mark.parametrize("script", UNSPACED)
def test_paragraphs_without_blanks_are_read_in_characters(script):
    text, characters, sentences = UNSPACED[script]
    tokens = characters_of(text)
    assert (len(tokens), sentences_in(text)) == (characters, sentences)
    assert not any(map(begins_with_a_mark, tokens))
    assert detokenise(Tokeniser(CHARACTERS).encode(text), CHARACTERS) == text
    assert reading(facts_of(f"{text}\n" * 60, 40_000)).load().data.tokenisation == "characters"


def test_all_paragraphs_in_one_text(tmp_path):
    assert_read_and_restored(SPACED.values(), tmp_path)
