"""Judgements: what holds, what does not, and how many seeds would settle it; against scipy's own tests."""

import math

import pytest
from scipy import stats

from elman.study.statistics import detectable, judge, judge_spread, seeds_needed, spread_text


def test_a_clear_difference_holds_and_its_opposite_does_not():
    assert judge([-0.11, -0.10, -0.09], high=0.0).answer == "holds"
    assert judge([0.11, 0.10, 0.09], high=0.0).answer == "does not hold"


def test_noise_is_undecided_and_asks_for_more_seeds():
    found = judge([-0.3, 0.1, -0.1], high=0.0)
    assert found.answer == "undecided"
    assert found.needs > 3


def test_one_seed_decides_nothing():
    assert judge([-5.0], high=0.0).answer == "undecided"


def test_p_value_and_interval_are_those_of_the_paired_t_test():
    differences = [-0.12, -0.02, -0.07, -0.05]
    found, theirs = judge(differences, high=0.0), stats.ttest_1samp(differences, 0.0)
    assert found.p_value == pytest.approx(theirs.pvalue)
    interval = theirs.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_equivalence_needs_the_whole_interval_within():
    assert judge([0.001, -0.001, 0.0005], low=-0.01, high=0.01).answer == "holds"
    assert judge([0.05, 0.051, 0.049], low=-0.01, high=0.01).answer == "does not hold"
    assert judge([0.02, -0.02, 0.0], low=-0.01, high=0.01).answer == "undecided"


def test_divergence_decides_when_every_seed_diverges():
    assert judge([math.inf] * 3, low=math.log(2)).answer == "holds"
    assert judge([math.inf] * 3, high=0.0).answer == "does not hold"
    assert judge([math.inf, -0.1, -0.1], high=0.0).answer == "undecided"


def test_one_seed_that_diverged_decides_nothing():
    found = judge([math.inf], high=0.0)
    assert (found.answer, found.direction, found.needs) == ("undecided", "does not hold", 3)


def test_a_seed_that_diverged_leaves_the_others_to_be_decided():
    """Two finite seeds of three that lie on one side by chance are no evidence; a clear difference of them is."""
    assert judge([-math.inf, -0.001, -0.02], high=0.0).answer == "undecided"
    assert judge([-math.inf, -0.02, -0.021, -0.019], high=0.0).answer == "holds"
    assert judge([math.inf, 0.5], high=0.0).answer == "undecided"


def test_equal_arms_differ_by_nothing_and_refute_nothing():
    """The mean is on the bound with no deviation: p = 1 is no refutation, and no difference is certain."""
    found = judge([0.0, 0.0], high=0.0)
    assert (found.answer, found.p_value, found.equivalence(0.02)) == ("undecided", 1.0, 0.0)


def test_planned_seeds_have_the_power_they_promise():
    """By simulation: with so many seeds a true effect is found about four times in five."""
    count = seeds_needed(0.5, 1.0)
    draws = stats.norm.rvs(loc=0.5, size=(4000, count), random_state=0)
    power = (stats.ttest_1samp(draws, 0.0, axis=1).pvalue < 0.05).mean()
    assert 0.78 < power < 0.84


def test_spread_has_digits_that_fit():
    assert spread_text([98.8, 99.0]) == "98.90 ± 0.14"
    assert spread_text([1.2345, 1.2355]) == "1.2350 ± 0.0007"


def test_divergence_on_both_sides_is_undecided():
    assert judge([math.inf, -math.inf], high=0.0).answer == "undecided"
    for unknown in ([math.nan, math.nan], [math.nan, -math.inf], [math.nan, math.inf], [math.nan, 1.0]):
        assert judge(unknown, high=0.0).answer == "undecided"
    assert judge([math.inf, math.inf, 1.0], low=0.0).mean == math.inf


def test_figures_that_rounding_would_hide_have_an_exponent():
    assert spread_text([3e-16, 3e-16]) == "3.0e-16 ± 0.0000"
    assert spread_text([100.0, 100.0001]) == "100.00 ± 7.1e-05"
    assert spread_text([0.0, 0.0]) == "0 ± 0"


def test_what_so_many_seeds_detect_is_what_needs_so_many():
    for count in (2, 3, 10, 100):
        effect = detectable(count, 0.5)
        assert seeds_needed(effect * 1.001, 0.5) == count
        assert seeds_needed(effect * 0.999, 0.5) == count + 1


def test_the_direction_is_that_of_the_mean():
    assert judge([-0.3, 0.1, -0.1], high=0.0).direction == "holds"
    assert judge([0.3, -0.1, 0.1], high=0.0).direction == "does not hold"
    assert judge([-5.0], high=0.0).direction == "holds"
    assert judge([0.02, -0.02, 0.003], low=-0.01, high=0.01).direction == "holds"
    assert judge([math.inf, 1.0, 1.0], low=0.0).direction == "holds"
    assert judge([math.inf, -1.0], high=0.0).direction == "does not hold"
    assert judge([math.inf, -math.inf], high=0.0).direction == "undecided"


def test_variances_are_compared_by_the_f_test():
    """Values of scipy's F distribution: for 9 and 9 degrees of freedom the 97.5 % quantile is 4.026."""
    scattered = [1.0, -1.0] * 5
    half = [value / 2 for value in scattered]
    found = judge_spread(half, scattered)
    assert found.mean == pytest.approx(math.log(0.5))
    assert (found.low, found.high) == pytest.approx(
        [math.log(0.5) - math.log(4.026) / 2, math.log(0.5) + math.log(4.026) / 2], abs=1e-4
    )
    assert found.p_value == pytest.approx(0.0510, abs=2e-4)
    assert (found.answer, found.inside, found.needs) == ("undecided", True, 19)
    third = [value / 3 for value in scattered]
    assert judge_spread(third, scattered).answer == "holds"
    assert judge_spread(scattered, third).answer == "does not hold"
    assert judge_spread([1.0, 1.0], [2.0, 1.0]).answer == "holds"
    assert judge_spread([2.0, 1.0], [1.0, 1.0]).answer == "does not hold"
    equal = judge_spread([1.0, 1.0, 1.0], [2.0, 2.0, 2.0])
    assert (equal.answer, equal.mean, equal.p_value) == ("undecided", 0.0, 1.0)
    assert judge_spread([1.0], [2.0]).answer == "undecided"
    assert judge_spread([1.0, math.inf], [2.0, 1.0]).answer == "undecided"


@pytest.mark.parametrize("values", [[0.01, -0.004, 0.006, 0.002], [-0.03, 0.01, -0.015], [0.0, 0.001, 0.0005]])
@pytest.mark.parametrize("margin", [0.02, 0.005])
def test_equivalence_is_two_one_sided_t_tests(values, margin):
    """As scipy and statsmodels compute them, and as the bound inverts them."""
    edge = math.log1p(margin)
    above = stats.ttest_1samp(values, -edge, alternative="greater").pvalue
    below = stats.ttest_1samp(values, edge, alternative="less").pvalue
    found = judge(values, high=0.0)
    assert found.equivalence(margin) == pytest.approx(max(above, below))
    descriptive = pytest.importorskip("statsmodels.stats.weightstats").DescrStatsW(values)
    assert found.equivalence(margin) == pytest.approx(descriptive.ttost_mean(-edge, edge)[0])
    assert found.equivalence(found.bound(0.05)) == pytest.approx(0.05)


def test_equivalence_of_one_value_is_unknown():
    assert math.isnan(judge([0.001], high=0.0).equivalence())


def test_several_tests_need_more_seeds():
    """By the power of a t test at 5 % divided by their number, as simulated by its distribution."""
    assert seeds_needed(1.0, 1.0, tests=18) > seeds_needed(1.0, 1.0) == 10
