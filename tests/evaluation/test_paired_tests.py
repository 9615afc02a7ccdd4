"""Paired tests of two models on minimal pairs and on items, by value."""

import math

import numpy as np
import pytest
from scipy import stats

from elman.data.minimal_pairs import Pair
from elman.evaluation.paired import compare_accuracies, compare_items, holm, mcnemar


@pytest.mark.parametrize(("only_a", "only_b"), [(1, 5), (5, 1), (0, 7), (12, 25), (4, 4)])
def test_mcnemars_test_is_the_binomial_test_of_the_discordant_pairs(only_a, only_b):
    found, total = mcnemar(only_a, only_b), only_a + only_b
    assert found.exact == pytest.approx(stats.binomtest(only_a, total).pvalue)
    halves = [math.comb(total, k) / 2**total * (0.5 if k == min(only_a, only_b) else 1) for k in range(total + 1)]
    assert found.mid_p == pytest.approx(2 * sum(halves[: min(only_a, only_b) + 1]))


def test_holms_method_multiplies_the_smallest_most():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_accuracies_are_compared_on_the_pairs_that_both_judge():
    pairs = [Pair("g", "b", name) for name in "xxxxyy"]
    nan = [math.nan, math.nan]
    a = np.array([[1, 0], [0, 1], [0, 1], [1, 0], [0, 0], nan])
    b = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [1, 0], [1, 0]])
    x, y, every = compare_accuracies(pairs, a, b)
    assert (x.judged, x.a, x.b, x.only_a, x.only_b, x.difference) == (4, 0.5, 0.75, 1, 2, 0.25)
    assert (y.judged, y.unjudged_a, y.unjudged_b, y.a, y.b) == (1, 1, 0, 0.0, 1.0)
    assert (y.low, y.high) == (pytest.approx(1 / 3 - 1.959964 * math.sqrt(2 - 1 / 3) / 3, rel=1e-6), 1.0)
    assert compare_accuracies(pairs, b, a)[1].low == -1.0
    assert (every.pairs, every.judged, every.only_a, every.only_b) == (6, 5, 1, 3)
    error = math.sqrt((3 + 1) - 1 / 6) / 6
    assert (x.low, x.high) == pytest.approx((1 / 6 - 1.959964 * error, 1 / 6 + 1.959964 * error), rel=1e-6)
    assert (every.p_exact, every.p_mid) == pytest.approx((0.625, 0.375))
    assert (x.p_holm, y.p_holm, every.p_holm) == (pytest.approx(1.0), pytest.approx(1.0), None)


def test_no_pair_that_both_judge_has_no_accuracy():
    nan = np.full((1, 2), np.nan)
    (row, _) = compare_accuracies([Pair("g", "b", "x")], nan, np.array([[1.0, 0.0]]))
    assert (row.judged, row.a, row.difference, row.low, row.p_mid) == (0, None, None, None, 1.0)


def test_items_are_compared_by_the_paired_t_test_of_their_means():
    """Each item is one observation, however many there are."""
    draw = np.random.default_rng(0)
    a, b = -draw.exponential(5.0, 240), -draw.exponential(4.0, 240)
    items, conditions = [str(n // 2) for n in range(240)], ["near", "far"] * 120
    near, far, every = compare_items(a, b, items, conditions)
    bits = -np.stack([a, b]) / math.log(2)
    for row, (x, y) in ((near, bits[:, ::2]), (far, bits[:, 1::2]), (every, bits.reshape(2, 120, 2).mean(2))):
        expected = stats.ttest_rel(x, y)
        assert (row.a, row.b, row.items) == (pytest.approx(x.mean()), pytest.approx(y.mean()), 120)
        assert row.p_value == pytest.approx(expected.pvalue)
        assert (row.low, row.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert every.sentences == 240
    assert [near.p_holm, far.p_holm] == pytest.approx(holm([near.p_value, far.p_value]))


def test_a_condition_of_one_item_has_no_test():
    first, _, _ = compare_items(np.array([-1.0, -2.0]), np.array([-1.0, -1.0]), ["1", "2"], ["x", "y"])
    assert (first.low, first.p_value, first.difference) == (None, None, 0.0)


def test_a_condition_without_a_test_is_not_adjusted_for():
    a, b, items = np.array([-1.0, -2.0, -4.0]), np.array([-1.0, -1.0, -1.0]), ["1", "2", "3"]
    tested, single, _ = compare_items(a, b, items, ["x", "x", "y"])
    assert (single.p_value, single.p_holm) == (None, None)
    assert tested.p_holm == tested.p_value
