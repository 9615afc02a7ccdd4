"""Comparisons: verdicts by figures, of a comparison and of a claim, and in words."""

from elman.reproduce.comparison import Bound, lower, no_difference, no_higher, times, together


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
    assert verdict.line == f"undecided (needs {verdict.needs} seeds; so far it points to does not hold)"


def test_bounds_hold_in_every_seed_or_not_at_all():
    assert Bound("ppl", "a", "limit").verdict(figures(a=[3.0, 4.0])).answer == "holds"
    assert Bound("ppl", "a", 3.5).verdict(figures(a=[3.0, 4.0])).answer == "does not hold"
    assert Bound("ppl", "a", "limit", exceeds=True).verdict(figures(a=[5.0, 4.0])).answer == "does not hold"


def test_a_claim_holds_when_all_of_it_does():
    yes = Bound("ppl", "a", 5.0).verdict(figures(a=[3.0]))
    no = Bound("ppl", "a", 1.0).verdict(figures(a=[3.0]))
    open_ = lower("ppl", "a", "b").verdict(figures(a=[1.0, 2.0], b=[2.0, 1.0]))
    assert together("", [yes, yes]).answer == "holds"
    assert together("", [yes, open_]).line.startswith("undecided (needs")
    assert together("", [no, open_]).answer == "does not hold"
