"""Parity, the word problem, selective copying and recall by key: every answer is found again from the inputs alone."""

import numpy as np
import pytest

from elman.data.classic import tracking


def drawn(draw, span, columns=20):
    batch, allowed = draw(np.random.default_rng(0), columns, span)
    columns_of = (part.t().tolist() for part in (batch.inputs, batch.targets))
    return list(zip(*columns_of, strict=True)), batch, allowed


@pytest.mark.parametrize("span", [1, 9])
def test_parity(span):
    samples, batch, allowed = drawn(tracking.parity, span)
    for read, said in samples:
        assert said == [read[: t + 1].count(1) % 2 for t in range(span)]
    assert batch.mask.all()
    assert (allowed.sum(-1) == 1).all()


@pytest.mark.parametrize("span", [1, 7])
@pytest.mark.parametrize("draw", [tracking.word_problem, tracking.swaps])
def test_the_word_problem(draw, span):
    """The product moves five things one after another, as the permutations say."""
    samples, _, _ = drawn(draw, span)
    for read, said in samples:
        things = list(range(5))
        for element, answer in zip(read, said, strict=True):
            if draw is tracking.swaps:
                assert (tracking.PERMUTATIONS[element] == range(5)).sum() == 3
            things = [int(tracking.PERMUTATIONS[element][thing]) for thing in things]
            assert tracking.PERMUTATIONS[answer].tolist() == things


def test_the_group_has_its_size_and_is_not_commutative():
    table = tracking.composed()
    assert table.shape == (120, 120)
    assert all(sorted(row) == list(range(120)) for row in table.tolist())
    assert (table != table.T).any()
    assert (table[0] == np.arange(120)).all()


@pytest.mark.parametrize("span", [1, 12])
def test_selective_copying(span):
    samples, batch, allowed = drawn(tracking.selective_copying, span, 200)
    places = set()
    for read, said in samples:
        assert len(read) == span + 10
        assert read[-5:] == [5] * 5
        kept = [symbol for symbol in read if symbol < 4]
        assert said[-5:] == kept
        assert read[: span + 5].count(4) == span
        places.add(tuple(place for place, symbol in enumerate(read) if symbol < 4))
    assert len(places) > min(span, 5)
    assert allowed.any(-1).sum() == batch.mask.sum() == 5 * 200


@pytest.mark.parametrize("span", [1, 6, 64])
def test_recall_by_key(span):
    samples, batch, _ = drawn(tracking.key_recall, span)
    for read, said in samples:
        pairs = dict(zip(read[: 2 * span : 2], read[1 : 2 * span : 2], strict=True))
        assert len(pairs) == span
        assert sorted(read[2 * span :]) == sorted(pairs)
        assert said[2 * span :] == [pairs[key] for key in read[2 * span :]]
    assert batch.mask.sum() == span * 20
