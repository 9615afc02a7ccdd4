import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.config.text import TextOptions
from elman.data.text.reading import TextReader
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.vocabulary import Vocabulary
from elman.evaluation.ngram import kneser_ney
from elman.evaluation.ngram.kneser_ney import Unigram
from elman.evaluation.ngram.model import train
from elman.evaluation.ngram.text import word_surprisals
from reference.kneser_ney import SlowKneserNey

SEEN, V = 6, 8
"""Two words of the vocabulary are never in a stream."""


def zipf(length, seed=0, words=SEEN, exponent=1.6):
    return np.random.default_rng(seed).zipf(exponent, length).clip(max=words).astype(np.int32) - 1


@pytest.fixture(scope="module")
def model():
    return kneser_ney.train(zipf(200), V, 4)


def distribution(model, history=()):
    """The probability of every word after a history, [V]."""
    size = len(model.counts) if isinstance(model, Unigram) else model.vocabulary_size
    return np.exp([model.log_prob(np.array([word]), history)[0] for word in range(size)])


def assert_equals_the_dictionary_form(stream, text, vocabulary_size, order):
    fast = kneser_ney.train(stream, vocabulary_size, order)
    slow = SlowKneserNey(stream.tolist(), vocabulary_size, min(order, len(stream)))
    wanted = [slow.probability(word, text[:at].tolist()) for at, word in enumerate(text.tolist())]
    np.testing.assert_allclose(np.exp(fast.log_prob(text)), wanted, rtol=1e-10)
    return slow


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("length", [1, 3, 40, 400])
def test_equals_the_dictionary_form(order, length):
    text = np.random.default_rng(1).integers(0, V, 60)
    assert_equals_the_dictionary_form(zipf(length), np.concatenate([text, zipf(60, seed=1)]), V, order)


def test_equals_the_dictionary_form_where_every_discount_is_estimated():
    stream = zipf(3000, words=60, exponent=1.2)
    slow = assert_equals_the_dictionary_form(stream, zipf(100, seed=1, words=60, exponent=1.2), 60, 4)
    assert all(slow.discounts[m][1] != 0.5 and slow.discounts[m][3] != 1.5 for m in (2, 3, 4))


@given(st.lists(st.integers(0, V - 1), min_size=1, max_size=30), st.integers(1, 6), st.randoms(use_true_random=False))
def test_equals_the_dictionary_form_on_any_stream(stream, order, random):
    text = np.array([random.randrange(V) for _ in range(10)] + stream)
    assert_equals_the_dictionary_form(np.array(stream), text, V, order)


def test_bigrams_by_hand():
    # All discounts are 1/2. Each of the three words has one word in front of it: p1 = (1 - 1/2)/3 + 1/2 * 1/3 = 1/3.
    model = kneser_ney.train(np.array([0, 1, 0, 2]), 3, order=2)
    np.testing.assert_allclose(distribution(model), [1 / 3, 1 / 3, 1 / 3])
    np.testing.assert_allclose(distribution(model, [0]), [1 / 6, 5 / 12, 5 / 12])
    np.testing.assert_allclose(distribution(model, [1]), [2 / 3, 1 / 6, 1 / 6])
    np.testing.assert_allclose(distribution(model, [2]), [1 / 3, 1 / 3, 1 / 3])


def test_discounts_by_hand():
    # n1..n4 = 8, 4, 2, 1: Y = 1/2, D1 = 1/2, D2 = 5/4, D3+ = 2; 26 tokens, and 8/2 + 4 * 5/4 + 3 * 2 = 15 taken.
    counts = [1] * 8 + [2] * 4 + [3] * 2 + [4] + [0]
    found = distribution(kneser_ney.train(np.repeat(np.arange(16), counts), 16, order=1))
    taken = np.repeat([0.5, 1.25, 2, 0], [8, 4, 3, 1])
    np.testing.assert_allclose(found, (counts - taken) / 26 + 15 / 26 / 16)


def test_a_discount_that_would_be_negative_is_half_the_count():
    # n1..n4 = 4, 1, 1, 2: Y = 2/3, D1 = 2/3, D2 = 2 - 2 = 0 and D3+ = 3 - 16/3 do not discount; 17 tokens.
    counts = [1] * 4 + [2, 3, 4, 4]
    found = distribution(kneser_ney.train(np.repeat(np.arange(8), counts), 8, order=1))
    taken = np.array([2 / 3] * 4 + [1, 1.5, 1.5, 1.5])
    np.testing.assert_allclose(found, (counts - taken) / 17 + taken.sum() / 17 / 8)


@given(st.lists(st.integers(0, V - 1), max_size=7))
def test_sums_to_one_after_any_history(model, history):
    found = distribution(model, history)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert (found > 0).all()


@pytest.mark.slow
@given(st.lists(st.integers(0, V - 1), min_size=1, max_size=25), st.integers(1, 30), st.data())
def test_sums_to_one_whatever_was_read(stream, order, data):
    model = kneser_ney.train(np.array(stream), V, order)
    for end in range(len(stream) + 1):
        assert distribution(model, stream[:end]).sum() == pytest.approx(1, abs=1e-12)
    assert distribution(model, data.draw(st.lists(st.integers(0, V - 1), max_size=6))).sum() == pytest.approx(
        1, abs=1e-12
    )


@pytest.mark.parametrize("cut", [0, 1, 2, 20, 50])
def test_history_continues_a_stream(model, cut):
    text = zipf(50, seed=2)
    parts = [model.log_prob(text[:cut]), model.log_prob(text[cut:], text[:cut])]
    np.testing.assert_array_equal(np.concatenate(parts), model.log_prob(text))


def test_a_history_may_be_a_list_and_only_its_end_matters(model):
    np.testing.assert_array_equal(model.log_prob(zipf(5), zipf(9)), model.log_prob(zipf(5), zipf(9).tolist()[-3:]))


def test_no_tokens_have_no_probabilities(model):
    assert model.log_prob(np.array([], dtype=np.int32), [1, 2]).shape == (0,)


@pytest.mark.parametrize("order", [1, 3, 40])
def test_an_ngram_model_of_one_distinct_word_sums_to_one(order):
    alone = kneser_ney.train(np.zeros(30, dtype=np.int32), V, order)
    assert distribution(alone, [0, 0]).sum() == pytest.approx(1, abs=1e-12)
    assert distribution(alone, [0, 0]).argmax() == 0
    assert np.isfinite(alone.log_prob(np.arange(V))).all()


def test_a_vocabulary_of_one_word_is_certain():
    assert distribution(kneser_ney.train(np.zeros(30, dtype=np.int32), 1, 3), [0]) == pytest.approx([1])


def test_order_longer_than_the_stream():
    assert kneser_ney.train(np.array([1, 2]), V, 5).order == 2


@pytest.mark.parametrize("word", [-1, V])
def test_words_outside_the_vocabulary_are_refused(model, word):
    for act in (
        lambda: kneser_ney.train(np.array([0, word]), V),
        lambda: model.log_prob(np.array([word])),
        lambda: model.log_prob(np.array([0]), [word]),
        lambda: Unigram.train(np.array([0, word]), V),
        lambda: Unigram.train(np.array([0]), V).log_prob(np.array([word])),
    ):
        with pytest.raises(AssertionError, match="outside the vocabulary"):
            act()


def test_context_helps_where_the_source_has_memory():
    stream = np.tile([0, 1, 2, 3], 100)
    model = kneser_ney.train(stream, V, 3)
    assert np.exp(-model.log_prob(stream).mean()) < 1.1
    assert np.exp(-Unigram.train(stream, V).log_prob(stream).mean()) > 3.9


def test_unigram_adds_one():
    model = Unigram.train(np.array([0, 0, 1]), 3)
    np.testing.assert_allclose(np.exp(model.log_prob(np.arange(3), [1])), [3 / 6, 2 / 6, 1 / 6])
    np.testing.assert_allclose(distribution(model, [2]), [3 / 6, 2 / 6, 1 / 6])


@pytest.mark.slow
def test_the_ngram_model_needs_no_torch():
    code = "import sys, elman.evaluation.ngram.pruning, elman.evaluation.ngram.arpa; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_words_written_as_marks_of_sentences_are_unknown():
    vocabulary = Vocabulary.from_counts(Counter({"a": 10, "b": 10, "c": 5, "<eos>": 10}), add_unk=True)
    text = ["a", "b", "<eos>", "b", "c", "a", "<eos>"] * 5
    model = train(vocabulary.encode(text), vocabulary, 3)
    tokeniser = Tokeniser(TextOptions())
    reader = TextReader(vocabulary, tokeniser, as_is=True)
    found = [
        list(word_surprisals(model, reader.complete(f"a {word} b"), tokeniser)) for word in ("</s>", "<s>", "strange")
    ]
    assert found[0] == found[1] == found[2]
    assert [word.unknown for word in found[0]] == [False, True, False, False]


def test_unknown_words_have_no_surprisal_where_they_are_excluded_or_improbable():
    vocabulary = Vocabulary.from_counts(Counter({"a": 10, "b": 10, "<eos>": 10}), add_unk=True)
    model = train(vocabulary.encode(["a", "b", "<eos>", "b", "a", "<eos>"] * 5), vocabulary, 2)
    tokeniser = Tokeniser(TextOptions())
    sentence = TextReader(vocabulary, tokeniser, as_is=True).complete("a strange b")
    usual, excluded = (list(word_surprisals(model, sentence, tokeniser, exclude=one)) for one in (False, True))
    assert [one.unknown for one in usual] == [one.unknown for one in excluded] == [False, True, False, False]
    assert [one.bits is None for one in excluded] == [False, True, False, False]
    assert [one.bits for one in excluded if one.bits] == [one.bits for one in usual if not one.unknown]
    assert not any(one.bits is None for one in usual)


def test_contexts_are_of_all_lengths_below_the_order(model):
    text = zipf(12, seed=3)
    found = model.contexts(text)
    assert len(found) == 3
    assert np.array_equal(found[0], text)
    assert kneser_ney.train(zipf(200), V, 1).contexts(text) == []
