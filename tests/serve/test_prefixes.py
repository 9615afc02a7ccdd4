"""What a tab remembers: the same figures as a text read at once, and only new symbols computed."""

import random

import numpy as np
import pytest
import torch

from elman.decoding.sampling import read
from elman.evaluation.scoring import predict_document
from elman.network.build import tiny_model
from elman.serve.prefixes import Prefixes, Symbols, size_of
from support.served import answer

FIRST = 0
SPACES = (2, 5)


@pytest.fixture
def model():
    return tiny_model(num_words=9).eval()


def symbols(model, ids):
    return Symbols(model, list(ids), list(ids), list(ids))


def at_once(model, ids):
    """Bits, ranks, entropies in bits, and bits of the symbols 2 and 5 together, of a text, [n] each."""
    (found,) = predict_document(model, [np.array(ids)], FIRST, spaces=SPACES)
    nats = (-found.log_prob, found.entropy[:-1], -found.space[:-1])
    bits, entropy, space = (part / np.log(2) for part in nats)
    return bits, found.rank, entropy, space


def assert_equal(found, expected):
    for one, other in zip(zip(*found, strict=True), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def number_of(node):
    below, found = [node], 0
    while below:
        found += 1
        below += below.pop().children.values()
    return found


def test_texts_that_change_are_read_as_if_from_the_beginning(model):
    draw, text, prefixes = random.Random(0), [], Prefixes(FIRST, 1.0, SPACES)
    for _ in range(25):
        place = draw.randrange(len(text) + 1) if draw.random() < 0.4 else len(text)
        text = text[:place] + [draw.randrange(9) for _ in range(draw.randrange(1, 30))] + text[place + 2 :][:40]
        assert_equal(answer(prefixes.read(symbols(model, text))), at_once(model, text))


def test_only_what_is_new_is_computed(model):
    prefixes, text = Prefixes(FIRST, 1.0, SPACES), [number % 9 for number in range(200)]
    answer(prefixes.read(symbols(model, text)))
    assert prefixes.computed == 200
    answer(prefixes.read(symbols(model, text)))
    assert prefixes.computed == 200
    answer(prefixes.read(symbols(model, [*text, 3])))  # a word more
    assert prefixes.computed == 201
    answer(prefixes.read(symbols(model, [*text, 4])))  # its last letters changed
    assert prefixes.computed == 202
    answer(prefixes.read(symbols(model, [*text[:100], 8, *text[101:]])))
    assert 202 + 100 <= prefixes.computed <= 202 + 116
    assert prefixes._nodes == number_of(prefixes._root) == 1 + 200 + 2 + 100
    before = prefixes.computed
    answer(prefixes.read(symbols(model, [*text[:20], 8, *text[21:]])))  # the first of the states that are kept
    assert prefixes.computed == before + 200 - 16


def test_states_are_bounded_and_the_figures_remain(model):
    one = size_of(model.begin(1))
    prefixes = Prefixes(FIRST, 3 * one / 2**20, SPACES)
    for begin in range(5):
        text = [(begin + number) % 9 for number in range(90)]
        assert_equal(answer(prefixes.read(symbols(model, text))), at_once(model, text))
        assert prefixes._bytes <= 3 * one
        assert prefixes._bytes == one * len(prefixes._kept)


@pytest.mark.parametrize("position", [0, 1, 15, 16, 17, 40])
def test_a_place_continues_as_the_whole_prefix_does(model, position):
    text, prefixes = [number % 7 for number in range(40)], Prefixes(FIRST, 1.0, SPACES)
    unread, state = answer(prefixes.place(symbols(model, text), position))
    found, _ = read(model, unread, state)
    expected, _ = read(model, [FIRST, *text[:position]], model.begin(1))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_words_beyond_the_vocabulary_differ_by_what_they_are(model):
    """Two unknown words have the same number as the first of their text, and are not taken for each other."""
    prefixes = Prefixes(FIRST, 1.0, SPACES)
    answer(prefixes.read(Symbols(model, [1, 5, 2], [1, 5, 2], [1, "cat", 2])))
    before = prefixes.computed
    answer(prefixes.read(Symbols(model, [1, 5, 2], [1, 5, 2], [1, "dog", 2])))
    assert prefixes.computed == before + 2


@pytest.mark.parametrize("nodes", [12_000, 150])
def test_questions_of_one_tab_may_take_turns(model, monkeypatch, nodes):
    """Each is read in pieces, and between two pieces others read the same text, or begin the tree again."""
    monkeypatch.setattr("elman.serve.prefixes.NODES", nodes)
    draw, prefixes = random.Random(1), Prefixes(FIRST, 0.01, SPACES)
    for _ in range(6):
        text = [draw.randrange(9) for _ in range(60)]
        works = [prefixes.read(symbols(model, text)), prefixes.place(symbols(model, text), 55)]
        works += [prefixes.place(symbols(model, text[:30] + [draw.randrange(9)] * 25), 50)]
        found = {}
        while len(found) < len(works):
            number = draw.choice([one for one in range(len(works)) if one not in found])
            try:
                next(works[number])
            except StopIteration as stop:
                found[number] = stop.value
        assert_equal(found[0], at_once(model, text))
        log_probs, _ = read(model, *found[1])
        expected, _ = read(model, [FIRST, *text[:55]], model.begin(1))
        torch.testing.assert_close(log_probs, expected, atol=1e-5, rtol=0)


def test_the_newest_state_is_kept_where_the_limit_is_smaller(model):
    prefixes = Prefixes(FIRST, 0.1 * size_of(model.begin(1)) / 2**20, SPACES)
    assert_equal(answer(prefixes.read(symbols(model, range(9)))), at_once(model, range(9)))
    assert len(prefixes._kept) == 1
