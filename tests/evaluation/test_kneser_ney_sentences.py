"""Kneser-Ney sentence by sentence, as KenLM's lmplz estimates it."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError
from elman.evaluation.ngram.model import train
from reference.kneser_ney import SlowSentences

LETTERS = "abcde"


def estimated(sentences, order, thresholds=()):
    """The model of sentences of words, and their vocabulary, in which f never occurs."""
    words = [word for sentence in sentences for word in (*sentence, "<eos>")]
    vocabulary = Vocabulary.from_counts(Counter(dict.fromkeys("abcdef", 1) | dict(Counter(words))), add_eos=True)
    return train(vocabulary.encode(words), vocabulary, order, thresholds=thresholds)


def predicted(model):
    return [word for word in model.words if word != "<s>"]


def assert_equals_the_dictionary_form(sentences, order, thresholds, histories):
    model = estimated(sentences, order, thresholds)
    # A length that no sentence reaches has no n-grams.
    longest = max(map(len, sentences)) + 2
    slow = SlowSentences(sentences, predicted(model), min(order, longest), [*thresholds, 0, 0, 0, 0][:order])
    for history in histories:
        context = [model.ids[word] for word in ("<s>", *history)]
        row = model.table.log_probs([int(one[-1]) for one in model.table.contexts(np.array(context))])
        for word in predicted(model):
            wanted = slow.probability(word, ("<s>", *history))
            assert np.exp(row[model.ids[word]]) == pytest.approx(wanted, rel=1e-9), (history, word)
            text = model.encode([*history, "<eos>" if word == "</s>" else word])
            assert model.score(text)[0][-1] == pytest.approx(row[model.ids[word]], abs=1e-12)
        assert np.exp(row).sum() == pytest.approx(1, abs=1e-12)
        assert row[model.ids["<s>"]] == -np.inf


@given(
    st.lists(st.lists(st.sampled_from(LETTERS), max_size=6), min_size=1, max_size=12),
    st.integers(1, 4),
    st.lists(st.lists(st.sampled_from([*LETTERS, "f", "<unk>"]), max_size=5), min_size=1, max_size=3),
    st.sampled_from([(), (0, 0, 1), (0, 1, 1, 2), (0, 1)]),
)
def test_equals_the_dictionary_form(sentences, order, histories, thresholds):
    thresholds = (*thresholds, *thresholds[-1:] * 4)[: max(order, len(thresholds))] if thresholds else ()
    assert_equals_the_dictionary_form(sentences, order, thresholds, histories)


@pytest.mark.parametrize("thresholds", [(), (0, 0, 1, 1), (0, 1, 2, 2)])
def test_equals_the_dictionary_form_where_every_discount_is_estimated(thresholds):
    draw = np.random.default_rng(0)
    sentences = [["abcde"[k] for k in draw.zipf(1.5, 8).clip(max=5) - 1] for _ in range(60)]
    assert_equals_the_dictionary_form(sentences, 4, thresholds, [[], ["a"], ["a", "b", "a"], ["e", "d", "c"]])


def test_bigrams_by_hand():
    # <s> a </s>, <s> a b </s>: all discounts are 1/2. Distinct words in front: a 1, b 1, </s> 2, in all 4; with six
    # letters, </s> and <unk> the uniform distribution is 1/8. The weight of single words is (1/2 + 1/2 + 1) / 4 = 1/2.
    model = estimated([["a"], ["a", "b"]], 2)
    a, end, unknown = (1 - 0.5) / 4 + 0.5 / 8, (2 - 1) / 4 + 0.5 / 8, 0.5 / 8
    unigrams = np.exp(model.table.levels[0].log_prob)
    np.testing.assert_allclose(
        [unigrams[model.ids[word]] for word in ("a", "b", "</s>", "f", "<unk>")], [a, a, end, unknown, unknown]
    )
    # After <s> a occurs twice (discount 1), so that the weight is 1/2; after a there are </s> and b, once each.
    found = np.exp(model.score(model.encode(["a", "<eos>", "a", "b", "<eos>"]))[0])
    first, after_a, after_b = 1 / 2 + a / 2, 0.25 + 0.5 * end, 0.5 + 0.5 * end
    np.testing.assert_allclose(found, [first, after_a, first, 0.25 + 0.5 * a, after_b])


def test_pruned_ngrams_give_their_counts_to_the_weight_of_their_context():
    sentences = [["a", "b"]] * 3 + [["a", "c"]]
    whole, pruned = estimated(sentences, 2), estimated(sentences, 2, (0, 1))
    assert len(whole.table.levels[1].keys) == 5
    assert len(pruned.table.levels[1].keys) == 3
    # After a: b three times (discount 3/2), c once: 1/2 is left of it, and all of it where it is pruned.
    weights = [np.exp(model.table.levels[0].backoff[model.ids["a"]]) for model in (whole, pruned)]
    np.testing.assert_allclose(weights, [(1.5 + 0.5) / 4, (1.5 + 1) / 4])


def test_sentences_are_independent_of_each_other():
    model = estimated([["a", "b"], ["b", "a", "c"]], 3)
    one, other = model.encode(["a", "b", "<eos>"]), model.encode(["c", "a", "<eos>"])
    both = model.score(np.concatenate([one, other]))[0]
    np.testing.assert_array_equal(both, np.concatenate([model.score(one)[0], model.score(other)[0]]))


def test_the_order_is_that_of_the_longest_sentence():
    assert estimated([["a"], ["b", "c"]], 9).table.order == 4


def test_marks_of_sentences_in_a_text_are_refused():
    with pytest.raises(UserError, match=r"the text has the word </s>"):
        estimated([["a", "</s>"]], 2)
    vocabulary = Vocabulary(("a", "b"), (1, 1))
    with pytest.raises(UserError, match="add --stream"):
        train(np.array([0, 1]), vocabulary, 2)
