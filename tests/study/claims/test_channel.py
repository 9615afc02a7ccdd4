"""The noisy channel, against an enumeration of everything that could have been heard."""

from itertools import product

import numpy as np
import pytest

from elman.study.claims.counts import Channel, Confusion, letter_pairs

WORDS = ["heart", "hearth", "earth", "sea", "seas", "<unk>", "tea", "."]


def test_the_list_holds_the_best_of_all_that_could_be_heard():
    channel = Channel(neighbours=2, nearest=0.2, distance=3.0, noise=1.0, size=7)
    confusion, sentence = Confusion(WORDS, channel, [5]), [0, 3, 7, 1]
    found = confusion.hear(sentence, np.random.default_rng(4))
    draw, columns = np.random.default_rng(4), []
    for word in sentence:
        ids, overlap = confusion.candidates(word)
        scores = 3.0 * (overlap - 1) + draw.normal(0, 1.0, len(ids))
        columns.append(list(zip(ids.tolist(), scores.tolist(), strict=True)))
    all_of_them = sorted(product(*columns), key=lambda one: -sum(score for _, score in one))
    assert len(all_of_them) > 7
    assert [ids for ids, _ in found] == [[word for word, _ in one] for one in all_of_them[:7]]
    assert [score for _, score in found] == pytest.approx([sum(s for _, s in one) for one in all_of_them[:7]])


def test_candidates_are_the_nearest_in_spelling():
    """Dice coefficients by hand: ^s se ea a$ share three pairs with ^s se ea as s$, two with ^t te ea a$."""
    confusion = Confusion(WORDS, Channel(neighbours=2), [5])
    ids, overlap = confusion.candidates(3)
    assert ids.tolist() == [3, 4, 6]
    assert overlap.tolist() == pytest.approx([1, 2 * 3 / 9, 2 * 2 / 8])
    assert confusion.candidates(7)[0].tolist() == [7], "nothing is spelt like a full stop"


def test_what_cannot_be_said_is_never_heard():
    confusion = Confusion(["unk", "<unk>", "funk"], Channel(nearest=0.0), [1])
    assert 1 not in confusion.candidates(0)[0][:2]
    assert Confusion(["unk", "<unk>", "funk"], Channel(), [1]).candidates(0)[0].tolist() == [0, 2]


def test_pairs_of_letters_are_counted():
    assert sorted(letter_pairs(["aaa", "ab"]).sum(1).tolist()) == [3, 4]
    assert letter_pairs(["aaa"]).max() == 2
