"""Pruning by relative entropy: Stolcke's formula against the perplexity counted out, and sums of one afterwards."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.data.text.vocabulary import Vocabulary
from elman.evaluation.ngram import pruning
from elman.evaluation.ngram.model import train
from elman.evaluation.ngram.table import BackoffTable

V = 5


def model_of(sentences, order):
    words = [word for sentence in sentences for word in (*sentence, "<eos>")]
    vocabulary = Vocabulary.from_counts(Counter([*"abc", *words]))
    return train(vocabulary.encode(words), vocabulary, order)


def drawn(order=2, lines=40):
    draw = np.random.default_rng(1)
    return model_of([["abc"[k] for k in draw.zipf(1.7, 5).clip(max=3) - 1] for _ in range(lines)], order)


def distribution(table, history):
    """The probabilities [V] of all words after the words of a history."""
    numbers = table.contexts(np.array(history, dtype=np.int64)) if len(history) else []
    return np.exp(table.log_probs([int(number[-1]) for number in numbers]))


def without(table, length, index):
    kept = [np.ones(len(level.keys), dtype=bool) for level in table.levels]
    kept[length - 1][index] = False
    return pruning.renormalised(table.keeping(kept))


def context_probability(table, history):
    """p of the words of a context in a row; <s> has that of </s>."""
    words = [table.markers.end if word == table.markers.begin else word for word in history]
    found = 1.0
    for at, word in enumerate(words):
        found *= distribution(table, history[:at])[word]
    return found


@pytest.mark.parametrize("order", [2, 3])
def test_the_formula_is_the_change_of_the_perplexity(order):
    """Of the longest n-grams: D = p(h) sum over all w of p(w | h) (log p(w | h) - log p'(w | h))."""
    table = drawn(order).table
    contexts = pruning._log_prob_of_contexts(table)
    found = pruning.entropy_rise(table, order, contexts[order - 2])
    for index, row in enumerate(table.rows(order).tolist()):
        history = row[:-1]
        before, after = distribution(table, history), distribution(without(table, order, index), history)
        possible = before > 0
        divergence = (before[possible] * np.log(before[possible] / after[possible])).sum()
        assert found[index] == pytest.approx(context_probability(table, history) * divergence, rel=1e-7, abs=1e-13)
        assert found[index] > -1e-15


def test_by_hand():
    # p(a) = .5, p(b) = .3, p(c) = .2; after a: b .6, the weight of a is .4 / .7. Without a b the weight is 1, and
    # D = .5 (.6 log(.6 / .3) + .4 log(.4 / .7)), since a and c become .5 and .2 from .5 * .4 / .7 and .2 * .4 / .7.
    from elman.evaluation.ngram.table import Level

    log = np.log
    words = Level(np.arange(3), log([0.5, 0.3, 0.2]), log([0.4 / 0.7, 1, 1]))
    table = BackoffTable([words, Level(np.array([1]), log([0.6]), np.zeros(1))], 3)
    rise = 0.5 * (0.6 * log(0.6 / 0.3) + 0.4 * log(0.4 / 0.7))
    assert pruning.entropy_rise(table, 2, words.log_prob) == pytest.approx([rise])
    assert pruning.prune(table, np.expm1(rise) * 0.999).order == 2
    pruned = pruning.prune(table, np.expm1(rise) * 1.001)
    assert pruned.order == 1
    np.testing.assert_allclose(distribution(pruned, [0]), [0.5, 0.3, 0.2])


@given(
    st.lists(st.lists(st.sampled_from("abc"), max_size=6), min_size=1, max_size=15),
    st.integers(2, 4),
    st.sampled_from([0.0, 1e-4, 1e-3, 1e-2, 0.1, 10.0]),
)
def test_probabilities_sum_to_one_afterwards(sentences, order, threshold):
    table = model_of(sentences, order).table
    pruned = pruning.prune(table, threshold)
    for length in range(order):
        for history in itertools.islice(itertools.product(range(table.vocabulary_size), repeat=length), 40):
            found = distribution(pruned, list(history))
            assert found.sum() == pytest.approx(1, abs=1e-9)
    assert threshold < 10 or pruned.order == 1


def test_what_stays_has_its_probability_and_its_context():
    table = drawn(4).table
    pruned = pruning.prune(table, 2e-3)
    whole, sizes = ([len(level.keys) for level in one.levels] for one in (table, pruned))
    assert sizes[0] == whole[0]
    assert all(after < before for after, before in zip(sizes[1:], whole[1:], strict=True))
    for length in range(2, pruned.order + 1):
        for row, log_prob in zip(pruned.rows(length).tolist(), pruned.levels[length - 1].log_prob, strict=True):
            assert np.exp(log_prob) == pytest.approx(distribution(table, row[:-1])[row[-1]])


def test_weights_computed_again_are_those_of_the_model():
    table = drawn(3).table
    again = pruning.renormalised(table)
    for before, after in zip(table.levels, again.levels, strict=True):
        np.testing.assert_allclose(after.backoff, before.backoff, atol=1e-9)


def test_a_lower_order():
    table = drawn(3).table
    cut = pruning.cut(table, 2)
    assert cut.order == 2
    np.testing.assert_allclose(distribution(cut, [0]), distribution(table, [0]))
    np.testing.assert_allclose(distribution(cut, [1, 0]), distribution(table, [0]))
