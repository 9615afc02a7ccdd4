import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.evaluation.measures import edit_distance, error_rate, exact_match, items
from elman.evaluation.statistics import difference, estimate

words = st.lists(st.sampled_from("abc"), max_size=6)


def recursive(one, other):
    """The definition."""
    if not one or not other:
        return len(one) + len(other)
    replaced = recursive(one[1:], other[1:]) + (one[0] != other[0])
    return min(recursive(one[1:], other) + 1, recursive(one, other[1:]) + 1, replaced)


@given(words, words)
def test_edit_distance_is_the_fewest_edits(one, other):
    assert edit_distance(one, other) == recursive(one, other)


def test_the_targets_of_one_source_are_alternatives():
    """The nearest reference counts, with its own length; of a source the output of its first line."""
    found = items(["k ae t", "x", "x"], ["k ae t s", "k ae t", "d ao g"], ["cat", "cat", "dog"])
    assert [one.references for one in found] == [("k ae t s", "k ae t"), ("d ao g",)]
    assert exact_match(found).value == 50
    assert error_rate(found, "words").value == pytest.approx(100 * 3 / 6)
    assert error_rate(items(["1204"], ["1234"]), "characters").value == 25
    units = [error_rate(found, unit).signature for unit in ("words", "characters")]
    assert ["per 100 symbols between spaces" in units[0], "per 100 characters" in units[1]] == [True, True]


def test_references_without_symbols_have_no_error_rate():
    assert math.isnan(error_rate(items(["a"], [""]), "words").value)


def test_resamples_without_symbols_have_no_part_in_the_interval():
    references, a, b = ["a b c", "", "d e f"], ["a b c", "", "d e f"], ["a b", "", "d e"]
    first, second = (error_rate(items(lines, references), "words") for lines in (a, b))
    found = estimate(second, samples=200)
    assert (found.low, found.high) == pytest.approx((100 / 3, 100 / 3))
    compared = difference(first, second, samples=200)
    assert (compared.low, compared.high) == pytest.approx((100 / 3, 100 / 3))
    nothing = estimate(error_rate(items([""], [""]), "words"), samples=20)
    assert nothing.low is nothing.high is None
