"""Continuations: where sentences end, and that what was not kept is drawn again."""

import functools

import pytest
import torch

from elman.config.inference import Sampling
from elman.config.text import TextOptions
from elman.decoding.sampling import Continuation, SentenceLimit
from support import networks


def kept(words, number, **options):
    """The tokens up to the end of so many sentences."""
    limit, found = SentenceLimit(number, TextOptions(**options)), []
    for word in words:
        if limit.reached or not limit.admits(word):
            break
        found.append(word)
    return found


@pytest.mark.parametrize("number", [1, 2])
def test_sentences_end_at_eos_where_there_is_one(number):
    words = ["a", ".", "b", "<eos>", "c", "<eos>", "d"]
    assert kept(words, number) == words[: [4, 6][number - 1]]


TEXTS = {
    "He ran. She sat": "He ran.",
    "3.14 is pi! Yes": "3.14 is pi!",
    "Well... no. Yes": "Well...",
    'He said "go." She went': 'He said "go."',
    "(Stop!) Now": "(Stop!)",
    "No end": "No end",
    "At the end.": "At the end.",
    "吾輩は猫である。名前は": "吾輩は猫である。",
    "「行け！」と": "「行け！」",
    "really?! yes": "really?!",
}


@pytest.mark.parametrize("text", TEXTS)
def test_sentences_end_with_a_final_mark_elsewhere(text):
    assert "".join(kept(text, 1, tokenisation="characters", eos="none")) == TEXTS[text]


def test_sentences_of_words_and_raw_text():
    words = ["he", "ran", ".", "she", "sat", "!", "we"]
    for tokenisation in ("words", "raw"):
        assert kept(words, 1, tokenisation=tokenisation, eos="none") == words[:3]
        assert kept(words, 2, tokenisation=tokenisation, eos="none") == words[:6]
    quoted = ["“", "go", ".", "”", "he", "ran"]
    assert kept(quoted, 1, tokenisation="raw", eos="none") == quoted[:4]


@functools.cache
def network():
    return networks.model("single").eval()


def continuation(words):
    model, options, generator = network(), TextOptions(eos="none"), torch.Generator().manual_seed(0)
    return Continuation(model, [0], model.begin(1), generator, Sampling(), words, options)


def test_a_text_in_parts_is_the_text_at_once():
    words = ["." if symbol % 3 == 0 else f"w{symbol}" for symbol in range(200)]
    whole, parts = list(continuation(words).draw(40)), continuation(words)
    drawn = []
    while len(drawn) < 30:
        sentence = list(parts.draw(40, sentences=1))
        assert parts.is_complete
        drawn += sentence
    assert drawn == whole[: len(drawn)]
    list(parts.draw(1, sentences=5))
    assert not parts.is_complete


def test_an_interrupted_text_continues_after_its_last_token():
    words = [f"w{symbol}" for symbol in range(200)]
    text, whole = continuation(words), list(continuation(words).draw(12))
    stream = text.draw(100)
    begun = [next(stream) for _ in range(5)]
    stream.close()
    assert begun + list(text.draw(7)) == whole
    assert len(text.unread) == 1
