"""How many seeds: how the number was planned, and what so many detect."""

import dataclasses
import math

import pytest

from elman.study.claim import Power
from elman.study.comparison import Bound, lower
from elman.study.figures import powers
from elman.study.record import how_planned
from elman.study.statistics import seeds_needed


def test_a_number_is_planned_set_asked_for_or_that_of_the_scale(experiment):
    planned = dataclasses.replace(experiment, seeds=Power(effect=0.02, deviation=0.012))
    count = seeds_needed(0.02, 0.012)
    text = how_planned(planned, "small", count)
    assert text.startswith(f"{count} seeds, which detect a ratio that is a factor of 1.02 away")
    assert "deviate by 0.012" in text
    assert how_planned(planned, "small", 3) == f"3 seeds, as the command asked; {count} are planned."
    assert how_planned(planned, "quick", 1).startswith("1 seed: the scale quick only indicates")
    assert how_planned(experiment, "small", 2) == "2 seeds, a number that the claim sets."


def test_the_power_is_that_of_the_deviation_observed():
    """Differences of logarithms that deviate by .01: five seeds detect .0169, and a planned .02 more often."""
    spread = [0.01 * step / math.sqrt(2.5) for step in (-2, -1, 0, 1, 2)]
    figures = {"a": [{"ppl": 9 * math.exp(each)} for each in spread], "b": [{"ppl": 10.0}] * 5}
    verdicts = [lower("ppl", "a", "b").verdict(figures), Bound("ppl", "a", 20.0).verdict(figures)]
    ((statement, deviation, planned, detected),) = powers(verdicts, 0.02)
    assert (statement, deviation, planned) == ("ppl of a is lower than of b", "0.01", "91 %")
    assert math.log(float(detected)) == pytest.approx(0.0169, abs=5e-4)
    assert seeds_needed(0.0169, 0.01) == 5
    assert powers(verdicts, None)[0][2] == ""


def test_one_seed_has_no_power():
    figures = {"a": [{"ppl": 9.0}], "b": [{"ppl": 10.0}]}
    assert powers([lower("ppl", "a", "b").verdict(figures)], 0.02) == []
