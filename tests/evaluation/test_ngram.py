import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.evaluation.ngram import KneserNey, Unigram
from reference.kneser_ney import SlowKneserNey

V = 6


def zipf(length, seed=0):
    return np.random.default_rng(seed).zipf(1.6, length).clip(max=V) - 1


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("length", [3, 40, 400])
def test_equals_the_dictionary_form(order, length):
    stream, text = zipf(length), zipf(60, seed=1)
    order = min(order, length)
    fast, slow = KneserNey.train(stream, V, order), SlowKneserNey(stream.tolist(), V, order)
    wanted = [slow.probability(word, text[:at].tolist()) for at, word in enumerate(text)]
    np.testing.assert_allclose(np.exp(fast.log_prob(text)), wanted, rtol=1e-10)


@given(st.lists(st.integers(0, V - 1), max_size=7))
def test_sums_to_one_after_any_history_and_agrees_with_log_prob(history):
    model = KneserNey.train(zipf(200), V, 4)
    distribution = model.distribution(history)
    assert distribution.sum() == pytest.approx(1, abs=1e-12)
    assert (distribution > 0).all()
    each = [np.exp(model.log_prob(np.array([word]), history)[0]) for word in range(V)]
    np.testing.assert_allclose(distribution, each, rtol=1e-12)


def test_history_continues_a_stream():
    model, text = KneserNey.train(zipf(300), V, 3), zipf(50, seed=2)
    parts = [model.log_prob(text[:20]), model.log_prob(text[20:], text[:20])]
    np.testing.assert_allclose(np.concatenate(parts), model.log_prob(text))


def test_order_longer_than_the_text_and_one_word_alone():
    assert KneserNey.train(np.array([1, 2]), V, 5).order == 2
    alone = KneserNey.train(np.zeros(30, dtype=int), V, 3)
    assert alone.distribution([0, 0]).sum() == pytest.approx(1)
    assert np.isfinite(alone.log_prob(np.arange(V))).all()


def test_context_helps_where_the_source_has_memory():
    stream = np.tile([0, 1, 2, 3], 100)
    model = KneserNey.train(stream, V, 3)
    assert np.exp(-model.log_prob(stream).mean()) < 1.1
    assert np.exp(-Unigram.train(stream, V).log_prob(stream).mean()) > 3.9


def test_unigram_adds_one():
    model = Unigram.train(np.array([0, 0, 1]), 3)
    np.testing.assert_allclose(np.exp(model.log_prob(np.arange(3))), [3 / 6, 2 / 6, 1 / 6])
