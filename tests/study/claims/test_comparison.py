"""Comparisons: verdicts by figures, of a comparison and of a claim, and in words."""

import math

import msgspec
import numpy as np
import pytest

from elman.errors import UserError
from elman.study.comparison import (
    Bound,
    ByToken,
    Steadier,
    Verdict,
    bounded,
    indication,
    lower,
    no_difference,
    no_higher,
    times,
    together,
)
from elman.study.statistics import Judgement


def figures(**arms):
    return {arm: [{"ppl": value, "limit": 4.0} for value in values] for arm, values in arms.items()}


def test_comparisons_answer_by_their_figures():
    clear = figures(a=[100.0, 101.0, 99.0], b=[110.0, 111.0, 109.5])
    assert lower("ppl", "a", "b").verdict(clear).answer == "holds"
    assert lower("ppl", "b", "a").verdict(clear).answer == "does not hold"
    assert times("ppl", "b", "a", 1.05).verdict(clear).answer == "holds"
    assert no_higher("ppl", "b", "a", 0.2).verdict(clear).answer == "holds"
    assert no_difference("ppl", "a", "b", 0.01).verdict(clear).answer == "does not hold"
    unclear = figures(a=[100.0, 120.0, 90.0], b=[105.0, 100.0, 101.0])
    verdict = lower("ppl", "a", "b").verdict(unclear)
    assert verdict.answer == "undecided"
    assert verdict.line == "undecided (needs 1,000 seeds or more; so far it points to does not hold)"
    fewer = lower("ppl", "a", "b").verdict(figures(a=[100.0, 104.0, 90.0], b=[105.0, 105.0, 101.0]))
    assert fewer.line == f"undecided (needs {fewer.needs} seeds; so far it points to holds)"


def test_bounds_hold_in_every_seed_or_not_at_all():
    assert Bound("ppl", "a", "limit").verdict(figures(a=[3.0, 4.0])).answer == "holds"
    assert Bound("ppl", "a", 3.5).verdict(figures(a=[3.0, 4.0])).answer == "does not hold"
    assert Bound("ppl", "a", "limit", exceeds=True).verdict(figures(a=[5.0, 4.0])).answer == "does not hold"


def test_a_bound_on_what_is_unknown_is_undecided_unless_another_seed_breaks_it():
    open_ = Bound("ppl", "a", 5.0).verdict(figures(a=[3.0, math.nan]))
    assert (open_.answer, open_.line) == ("undecided", "undecided")
    assert together("", [open_]).line == "undecided"
    assert Bound("ppl", "a", 5.0).verdict(figures(a=[6.0, math.nan])).answer == "does not hold"
    assert Bound("ppl", "a", 5.0, exceeds=True).verdict(figures(a=[math.nan])).answer == "undecided"


def test_ratios_that_no_digits_can_show():
    rows = figures(a=[math.inf, math.inf], b=[1.0, 2.0])
    assert lower("ppl", "a", "b").verdict(rows).figures.endswith("ratio infinite")
    assert lower("ppl", "a", "b").verdict(figures(a=[1e300], b=[1e-300])).figures.endswith("ratio e^1382")


@pytest.mark.parametrize("comparison", [lower("ppl", "a", "b"), Steadier("ppl", "a", "b")])
def test_negative_figures_have_no_ratio(comparison):
    """Such as nats of a density, in a claim of a plug-in."""
    with pytest.raises(UserError, match="-1 has no logarithm: ratios and spreads"):
        comparison.verdict(figures(a=[-1.0, 2.0], b=[1.0, 2.0]))


def test_equal_arms_do_not_differ():
    verdict = bounded(lower("ppl", "a", "b").verdict(figures(a=[50.0, 60.0], b=[50.0, 60.0])))
    assert verdict.line == together("", [verdict]).line == "no difference above 0 %"


def test_an_undecided_claim_has_no_p_value_that_would_decide_it():
    """One of four fails at p = .03: four times is the p-value of the claim; without deviation it is 0, not none."""
    fails = lower("ppl", "b", "a").verdict(figures(a=[1.0, 1.0, 1.0], b=[1.045, 1.026, 1.035]))
    holds = lower("ppl", "a", "b").verdict(figures(a=seeds(1.0), b=seeds(2.0)))
    assert together("", [fails, *[holds] * 3]).whole == pytest.approx(4 * fails.p_value)
    sure = lower("ppl", "b", "a").verdict(figures(a=[1.0, 1.0], b=[2.0, 2.0]))
    assert (together("", [sure]).answer, together("", [sure]).whole) == ("does not hold", 0.0)


def test_a_claim_holds_when_all_of_it_does():
    yes = Bound("ppl", "a", 5.0).verdict(figures(a=[3.0]))
    no = Bound("ppl", "a", 1.0).verdict(figures(a=[3.0]))
    open_ = lower("ppl", "a", "b").verdict(figures(a=[1.0, 2.0], b=[2.0, 1.0]))
    assert together("", [yes, yes]).answer == "holds"
    assert together("", [yes, open_]).line.startswith("undecided (needs")
    assert together("", [no, open_]).answer == "does not hold"


def seeds(value, count=3):
    """Figures that scatter a little round a value."""
    return [value * (1 + 1e-3 * step) for step in range(count)]


def test_the_direction_is_where_the_mean_lies():
    toward = lower("ppl", "a", "b").verdict(figures(a=[1.0, 1.8], b=[2.0, 1.7]))
    away = lower("ppl", "b", "a").verdict(figures(a=[1.0, 1.8], b=[2.0, 1.7]))
    assert toward.line == f"undecided (needs {toward.needs} seeds; so far it points to holds)"
    assert away.line.endswith("; so far it points to does not hold)")
    sure = lower("ppl", "a", "b").verdict(figures(a=seeds(1.0), b=seeds(2.0)))
    assert together("", [sure, toward]).line == f"undecided (needs {toward.needs} seeds; so far it points to holds)"
    assert together("", [toward, away]).line.endswith("so far it points to does not hold)")
    infinite = lower("ppl", "a", "b").verdict(figures(a=[math.inf, 1.0], b=[1.0, math.inf]))
    assert infinite.line == "undecided (needs 3 seeds)"
    mixed = lower("ppl", "a", "b").verdict(figures(a=[1.0, 1.1], b=[math.inf, 1.0]))
    assert mixed.line == "undecided (needs 3 seeds; so far it points to holds)"


def test_two_arms_that_diverge_are_undecided():
    verdict = lower("ppl", "a", "b").verdict(figures(a=[math.inf] * 3, b=[math.inf] * 3))
    assert verdict.line == "undecided (needs 4 seeds)"
    assert verdict.judgement.inside is None
    assert Steadier("ppl", "a", "b").verdict(figures(a=[math.inf] * 3, b=[1.0, 2.0, 3.0])).answer == "undecided"


def test_a_metric_of_0_is_lower_than_any_other_and_equal_to_itself():
    rows = figures(a=[0.0, 0.0, 0.0], b=[0.1, 0.2, 0.1])
    assert lower("ppl", "a", "b").verdict(rows).answer == "holds"
    assert lower("ppl", "b", "a").verdict(rows).answer == "does not hold"
    assert no_difference("ppl", "a", "b", 0.1).verdict(rows).answer == "does not hold"
    assert no_higher("ppl", "a", "a", 0.1).verdict(rows).answer == "holds"
    assert lower("ppl", "a", "b").verdict(figures(a=[0.0, 0.3], b=[0.1, 0.2])).answer == "undecided"
    assert Steadier("ppl", "a", "b").verdict(rows).answer == "undecided"


def judged_by_token(answer):
    found = Judgement(answer, 0.0, 1.0, -1.0, 1.0, 0.04)
    return ByToken(1000, 30, found)


def test_at_the_scale_quick_the_test_by_token_indicates_else_the_mean():
    one = lower("ppl", "a", "b").verdict(figures(a=[1.0], b=[2.0]))
    other = lower("ppl", "b", "a").verdict(figures(a=[1.0], b=[2.0]))
    assert indication(one).line == "indicates that it holds"
    assert indication(other).line == "indicates that it does not hold"
    assert indication(one).p_value is None
    for answer, line in (("undecided", "indicates nothing"), ("does not hold", "indicates that it does not hold")):
        tested = indication(msgspec.structs.replace(one, by_token=judged_by_token(answer)))
        assert tested.line == line
        assert tested.p_value == 0.04
    decided = lower("ppl", "a", "b").verdict(figures(a=seeds(1.0), b=seeds(2.0)))
    by_seed = indication(msgspec.structs.replace(decided, by_token=judged_by_token("does not hold")))
    assert by_seed.line == "indicates that it holds", "more seeds than one are judged by seed"
    assert by_seed.p_value == decided.p_value
    open_ = lower("ppl", "a", "b").verdict(figures(a=[1.0, 1.8], b=[2.0, 1.7]))
    assert indication(open_).p_value is None, "the mean is no test"
    assert indication(msgspec.structs.replace(open_, by_token=judged_by_token("holds"))).p_value == 0.04


def test_bounds_indicate_at_the_scale_quick():
    kept, broken = (indication(Bound("ppl", "a", limit).verdict(figures(a=[3.0]))) for limit in (5.0, 1.0))
    indicated = indication(lower("ppl", "a", "b").verdict(figures(a=[1.0], b=[2.0])))
    denied = indication(lower("ppl", "b", "a").verdict(figures(a=[1.0], b=[2.0])))
    assert together("", [kept]).line == "indicates that it holds"
    assert together("", [kept, indicated]).line == "indicates that it holds"
    assert together("", [kept, denied]).line == "indicates that it does not hold"
    assert together("", [broken, indicated]).line == "indicates that it does not hold"


def test_a_test_by_token_changes_no_verdict_by_seed():
    verdict = lower("ppl", "a", "b").verdict(figures(a=[1.0, 1.8], b=[2.0, 1.7]))
    with_test = msgspec.structs.replace(verdict, by_token=judged_by_token("holds"))
    assert with_test.line == verdict.line
    assert with_test.p_value == verdict.p_value


def test_a_steadier_arm_is_told_by_its_variance_alone():
    rows = {
        "a": [{"ppl": 100 * math.exp(0.01 * sign)} for sign in (1, -1) * 4],
        "b": [{"ppl": 50 * math.exp(0.05 * sign)} for sign in (1, -1) * 4],
    }
    found = Steadier("ppl", "a", "b").verdict(rows)
    assert found.answer == "holds"
    assert found.judgement.mean == pytest.approx(math.log(0.2))
    assert "standard deviations, ratio 0.2000; 95 % interval" in found.figures
    assert Steadier("ppl", "b", "a").verdict(rows).answer == "does not hold"


def test_one_comparison_refutes_a_claim_only_if_its_p_value_bears_their_number():
    """p = .03 of one of two is no refutation; verdict and p-value agree."""
    fails = lower("ppl", "b", "a").verdict(figures(a=[1.0, 1.0, 1.0], b=[1.045, 1.026, 1.035]))
    assert fails.answer == "does not hold"
    assert 0.0125 < fails.p_value < 0.05
    holds = lower("ppl", "a", "b").verdict(figures(a=seeds(1.0), b=seeds(2.0)))
    assert (alone := together("", [fails])).answer == "does not hold"
    assert alone.whole == fails.p_value
    many = together("", [fails, *[holds] * 3])
    assert many.answer == "undecided"
    assert many.needs > 3


def test_no_difference_is_a_bound_by_two_one_sided_tests():
    rows = figures(a=[100.0, 101.0, 99.0, 100.5], b=[100.2, 100.9, 99.1, 100.3])
    verdict = bounded(lower("ppl", "a", "b").verdict(rows))
    assert verdict.answer == "no difference"
    assert verdict.line == "no difference above 0.22 %"
    assert 0 < verdict.bound < 0.02
    assert together("", [verdict]).line == verdict.line
    assert together("", [verdict]).whole == verdict.p_value < 0.05
    wide = lower("ppl", "a", "b").verdict(figures(a=[100.0, 120.0, 90.0], b=[105.0, 100.0, 101.0]))
    assert (found := bounded(wide)).answer == "undecided"
    assert found.apart == pytest.approx(bound_by_hand(np.log([100 / 105, 120 / 100, 90 / 101])))
    assert found.line.startswith("undecided (at most 31 % either way; needs ")


@pytest.mark.parametrize(("apart", "percent"), [(0.028, "2.8"), (0.02801, "2.9"), (0.992, "100"), (1.204, "130")])
def test_a_bound_is_printed_with_two_digits_rounded_up_and_no_exponent(apart, percent):
    verdict = Verdict("", "undecided", "", "undecided", needs=5, apart=apart)
    assert verdict.line == f"undecided (at most {percent} % either way; needs 5 seeds)"
    assert msgspec.structs.replace(verdict, bound=apart).line == f"no difference above {percent} %"


def bound_by_hand(logarithms):
    """By Student's t with two degrees of freedom: 2.919986 at a level of 5 %."""
    return np.exp(abs(logarithms.mean()) + 2.919986 * logarithms.std(ddof=1) / math.sqrt(3)) - 1


def test_an_undecided_claim_is_bounded_by_its_widest_comparison_that_does_not_hold():
    undecided = [
        bounded(lower("ppl", "a", "b").verdict(figures(a=rows, b=[100.0, 100.0, 100.0])))
        for rows in ([101.0, 97.0, 98.0], [110.0, 95.0, 97.0])
    ]
    holds = lower("ppl", "a", "b").verdict(figures(a=[90.0, 90.1, 89.9], b=[100.0, 100.0, 100.0]))
    made = together("", [holds, *undecided])
    assert made.answer == "undecided"
    assert holds.answer == "holds"
    assert made.apart == max(one.apart for one in undecided) == undecided[1].apart
    spread = Steadier("ppl", "a", "b").verdict(figures(a=[90.0, 90.1, 89.9], b=[100.0, 100.2, 100.1]))
    assert together("", [*undecided, spread]).apart is None, "of variances no ratio is bounded"
