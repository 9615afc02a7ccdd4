"""Units on ranges of a text, by hand."""

import numpy as np
import pytest

from elman.analysis.units import Scale, context, units_apart


def test_values_are_standard_deviations_above_the_mean_after_the_beginning():
    values = np.array([[9, 0], [9, 0], [1, 5], [3, 5], [5, 5], [7, 5], [1, 5], [7, 5]], np.float32)
    scale = Scale.of(values)  # a quarter is left out
    spread = np.sqrt((9 + 1 + 1 + 9 + 9 + 9) / 6)
    np.testing.assert_allclose(scale.apply(values)[:, 0], (values[:, 0] - 4) / spread, rtol=1e-6)
    np.testing.assert_allclose(scale.apply(values)[:, 1], values[:, 1] - 5)


@pytest.mark.parametrize("value", [0.1, 0.73, -2.3, 0.0])
def test_a_unit_that_never_changes_is_at_its_mean(value):
    """Sums of thousands of equal float32 numbers are rounded: they were a deviation from the mean."""
    values = np.full((5000, 1), value, np.float32)
    scale = Scale.of(values)
    assert scale.deviation == 1
    np.testing.assert_allclose(scale.apply(values), 0, atol=1e-6)


def test_units_are_ordered_by_how_much_higher_they_are_where_tokens_match():
    values = np.array([[1, 2, 0], [3, 8, 0], [5, 0, 0]], np.float32)
    found = units_apart(values, np.array([True, True, False]))
    assert [(one.unit, one.mean, one.switches) for one in found] == [(1, 5.0, False), (2, 0.0, False), (0, -3.0, False)]


@pytest.mark.parametrize(
    ("start", "length", "first", "text"),
    [(5, 2, 3, "d e [f g] h i"), (1, 2, 0, "a [b c] d e"), (8, 2, 6, "g h [i j]"), (0, 1, 0, "[a] b c")],
)
def test_a_range_stands_among_its_neighbours(start, length, first, text):
    found = context("abcdefghij", np.arange(10, dtype=np.float32), start, length, 2)
    assert (found.first, found.text(" ")) == (first, text)
    assert found.peak == start + length - 1
    assert found.values[0] == first
