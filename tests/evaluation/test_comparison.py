"""The paired comparison of two models."""

import numpy as np
import pytest

from elman.evaluation.statistics import compare


def log_probs(n=5000, seed=0):
    return -np.random.default_rng(seed).exponential(4.0, n)


def noise(n=5000, seed=1, size=0.5):
    return size * np.random.default_rng(seed).standard_normal(n)


def test_a_true_difference_is_found():
    a = log_probs()
    found = compare(a, a + 0.05 + noise())
    assert found.low < 0.05 < found.high
    assert found.low > 0
    assert found.p_value < 1e-4
    assert found.ratio == pytest.approx(np.exp(found.difference))
    assert found.tokens == 5000


def test_comparison_is_antisymmetric():
    a, b = log_probs(), log_probs() + 0.03 + noise()
    one, other = compare(a, b), compare(b, a)
    assert other.difference == pytest.approx(-one.difference)
    assert (other.low, other.high) == (pytest.approx(-one.high), pytest.approx(-one.low))
    assert other.p_value == pytest.approx(one.p_value)
    assert other.ratio * one.ratio == pytest.approx(1)
    assert other.better == pytest.approx(1 - one.better)


def test_noise_alone_is_rarely_called_a_difference():
    """At 5 %, about one in twenty times."""
    a = log_probs()
    rejected = sum(compare(a, a + noise(seed=seed)).p_value < 0.05 for seed in range(200))
    assert 2 <= rejected <= 22


def test_correlated_noise_is_not_taken_for_evidence():
    """Neighbouring tokens share their error; taken one by one they would reject nearly every time."""
    a, rejected, naive = log_probs(20_000), 0, 0
    for seed in range(60):
        error = np.repeat(noise(20_000 // 20, seed), 20)
        rejected += compare(a, a + error).p_value < 0.05
        naive += abs(error.mean()) > 1.96 * error.std() / np.sqrt(len(error))
    assert rejected <= 9
    assert naive > 25


def test_a_model_against_itself():
    found = compare(log_probs(), log_probs())
    assert (found.difference, found.p_value, found.ratio, found.better) == (0, 1, 1, 0)


def test_skipped_tokens_are_left_out():
    a, b = log_probs(), log_probs() + noise()
    a[0], b[7] = np.nan, np.nan
    counted = np.arange(5000) % 5000
    counted = np.delete(counted, [0, 7])
    assert compare(a, b) == compare(a[counted], b[counted])


@pytest.mark.parametrize("n", [2, 5, 30])
def test_short_texts(n):
    found = compare(log_probs(n), log_probs(n) + noise(n))
    assert 0 <= found.p_value <= 1
    assert found.low <= found.difference <= found.high
