"""A forecast drawn beside its series: every value that is known is seen."""

import numpy as np
import pytest

from elman.drawing.forecast import Forecast


def dots(line):
    """The places of a line that have a dot."""
    return [] if line.get_marker() == "None" else list(line.get_markevery())


def test_values_between_missing_ones_are_dots():
    found = Forecast(
        "c", 0, [1.0, None, 3.0, 2.0, None, 4.0], [None, 1.0, 2.0, 2.5, None, 3.0], [1.0] * 2, [2.0] * 2, [3.0] * 2
    )
    truth, one_step, middle = found.figure().axes[0].lines
    assert (dots(truth), dots(one_step), dots(middle)) == ([0, 5], [5], [])
    np.testing.assert_array_equal(truth.get_ydata(), [1, np.nan, 3, 2, np.nan, 4])


@pytest.mark.parametrize(("steps", "width"), [(1, 5), (2, 0)])
def test_a_forecast_of_one_step_is_seen(steps, width):
    found = Forecast("c", 5, [1.0, 2.0], [1.0, 2.0], [1.0] * steps, [2.0] * steps, [3.0] * steps)
    axes = found.figure().axes[0]
    assert dots(axes.lines[-1]) == ([0] if steps == 1 else [])
    assert axes.collections[0].get_linewidth() == [width]
