"""Intervals, and the paired comparison of two models."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from elman.evaluation.spread import spread
from elman.evaluation.statistics import (
    Measure,
    Proportion,
    compare,
    difference,
    estimate,
    precision,
    resampling_p_value,
)


def log_probs(n=5000, seed=0):
    return -np.random.default_rng(seed).exponential(4.0, n)


def noise(n=5000, seed=1, size=0.5):
    return size * np.random.default_rng(seed).standard_normal(n)


def test_wilsons_interval_of_a_proportion():
    """The bounds solve (p - bound)^2 = z^2 bound (1 - bound) / n."""
    one = Proportion(7, 20)
    for bound in one.interval:
        assert (one.share - bound) ** 2 == pytest.approx(1.959964**2 * bound * (1 - bound) / 20, rel=1e-5)
    assert Proportion(0, 0).interval == (0.0, 1.0)


def test_spread_divides_by_one_less_than_the_count_and_its_margin_is_students():
    found = spread([1.0, 2.0, np.nan, 3.0, 4.0, None])
    assert (found.mean, found.count) == (2.5, 4)
    assert found.deviation == pytest.approx(1.2909944)
    assert found.margin == pytest.approx(3.1824463 * 1.2909944 / 2)
    assert np.isnan(spread([5.0]).margin)
    assert spread([None, np.inf]) is None


def test_comparison_is_the_t_test_of_the_block_means():
    a, gain = log_probs(600), noise(600) + 0.1
    blocks = gain.reshape(30, 20).mean(1)
    expected, found = stats.ttest_1samp(blocks, 0), compare(a, a + gain, block=20)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))


def test_a_resampling_p_value_is_never_zero():
    assert resampling_p_value(9.0, [0.0, 1.0, -9.0, 9.5]) == pytest.approx(3 / 5)
    assert resampling_p_value(9.0, np.zeros(199)) == pytest.approx(1 / 200)
    better, worse = (Measure("mean", np.stack([x, np.ones(60)], 1), lambda sums: sums[0] / sums[1]) for x in (
        np.full(60, 5.0), np.full(60, 1.0)))  # fmt: skip
    found = difference(worse, better, samples=99)
    assert (found.difference, found.p_value) == (4.0, 1 / 100)


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
def test_texts_of_few_words_are_compared(n):
    found = compare(log_probs(n), log_probs(n) + noise(n))
    assert 0 <= found.p_value <= 1
    assert found.low <= found.difference <= found.high


MEAN = [np.random.default_rng(seed).standard_normal(400) for seed in (7, 8)]


def means(values):
    """The mean over sentences as a measure."""
    return Measure("mean", np.stack([values, np.ones(len(values))], 1), lambda sums: sums[0] / sums[1])


def test_the_interval_of_a_mean_is_that_of_the_normal_distribution():
    """With 400 sentences mean -+ 1.96 s / 20; the quantiles of 4,000 resamples are within 5 % of that."""
    values = MEAN[0]
    half = 1.959964 * values.std() / 20
    found = estimate(means(values), samples=4000)
    assert found.value == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.05 * half)


def test_a_measure_that_one_sentence_decides_has_no_interval(capsys):
    """Sentences without statistics, as those without an unknown word, do not count."""
    one = Measure("accuracy, unknown words", np.array([[1.0, 2.0], [0, 0], [0, 0]]), precision)
    found = estimate(one)
    assert (found.value, found.low, found.high) == (50, None, None)
    assert "accuracy, unknown words: no interval" in capsys.readouterr().err
    compared = difference(one, one)
    assert (compared.low, compared.high) == (None, None)


def test_two_systems_are_resampled_together():
    """The interval of the difference has the width of the differences by sentence, not that of the systems."""
    values, change = MEAN[0], 0.1 * MEAN[1] + 0.05
    half = 1.959964 * change.std() / 20
    found = difference(means(values), means(values + change), samples=4000)
    assert (found.low, found.high) == pytest.approx((change.mean() - half, change.mean() + half), abs=0.05 * half)


def test_the_p_value_of_a_difference_is_the_share_of_all_exchanges():
    """Of ten sentences all 1,024 exchanges can be counted."""
    values, change = MEAN[0][:10], MEAN[1][:10] + 0.4
    signs = np.array(list(itertools.product([-1, 1], repeat=10)))
    exact = (np.abs(signs @ change) >= abs(change.sum()) - 1e-12).mean()
    found = difference(means(values), means(values + change), samples=20_000)
    assert 0.05 < exact < 0.9
    assert found.p_value == pytest.approx(exact, abs=0.01)


def test_models_that_are_far_apart_have_a_finite_ratio():
    found = compare(np.full(40, -900.0), np.full(40, -1.0))
    assert (found.difference, math.isfinite(found.ratio)) == (899, True)
