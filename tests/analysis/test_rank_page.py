"""The curve of singular values keeps its drops, and the sentences say who is bound."""

import msgspec
import numpy as np
import pytest

from elman.analysis import rank_page
from elman.analysis.rank import Finding, Sensitivity, Spectrum, method_for
from elman.analysis.rank_page import verdict, visible

SIZES = np.geomspace(1.0, 1e-9, 50)


def finding(rank, bound, at_least=False):
    found = Spectrum(np.geomspace(1.0, 1e-9, 50), 50, 60, "float32", "gram", 1e-8)
    return Finding(8, bound, 10, rank, at_least, 1e-6, [Sensitivity(1.0, rank, at_least)], 0.1, found)


def test_a_long_curve_keeps_both_sides_of_its_drop():
    values = np.linspace(2.0, 1.0, 10_000)
    values[402:] *= 1e-6
    shown = visible(values)
    assert {0, 401, 402, 9_999} <= set(shown)
    assert len(shown) < 500
    assert len(visible(values[:300])) == 300


def test_one_run_is_named_with_its_bound():
    assert "d + 2 = 10; the rank 10 is within it" in verdict({"a": finding(10, 10)})
    assert "the rank 40 is above d + 2 = 10" in verdict({"a": finding(40, None)})


def test_every_run_has_its_sentence():
    found = verdict({"b": finding(40, None, at_least=True), "c": finding(5, None), "d": finding(12, 10)})
    assert found.count("bound of one softmax") == 2
    assert "rank ≥ 40 is above" in found
    assert "rank 5 is within" in found
    open_ended = finding(5, None, at_least=True)
    assert "the rank ≥ 5 may be above d + 2 = 10, the bound" in verdict({"e": open_ended})
    assert (open_ended.exceeds, finding(5, 10, at_least=True).exceeds) == (None, False)
    assert "d: a softmax with d = 8 never exceeds d + 2 = 10; the rank 12 exceeds it: rounding" in found


def test_the_method_follows_the_size():
    assert [method_for(side) for side in (100, 10_000, 33_000)] == ["exact", "gram", "randomised"]


def test_lines_are_relative_to_the_largest_value_and_bounds_on_the_border_are_marked(monkeypatch):
    one = msgspec.structs.replace(finding(10, 10), softmax_bound=50)
    drawn, marked = [], []
    monkeypatch.setattr(rank_page, "_mark_bounds", lambda axes, bounds: marked.extend([axes, *bounds]))
    monkeypatch.setattr(rank_page, "svg", lambda figure, *_: drawn.extend(figure.axes[0].lines))
    rank_page._figure({"a": one}, "linear")
    assert marked[1:] == [50]
    sizes = np.geomspace(1.0, 1e-9, 50)
    np.testing.assert_allclose(drawn[0].get_ydata(), sizes[: len(drawn[0].get_ydata())])
    assert drawn[0].get_xdata()[0] == 1
    assert drawn[-1].get_ydata()[0] == pytest.approx(1e-6)


def test_a_spectrum_of_other_size_has_the_same_lines_and_a_long_one_its_first_values(monkeypatch):
    found, drawn = finding(10, 10), []
    large = msgspec.structs.replace(found, spectrum=found.spectrum._replace(singular_values=SIZES * 1e3, error=1e-5))
    monkeypatch.setattr(rank_page, "svg", lambda figure, *_: drawn.append(figure.axes[0].lines[:2]))
    for one in (found, large):
        rank_page._figure({"a": one}, "linear")
    for before, after in zip(*drawn, strict=True):
        np.testing.assert_allclose(after.get_xydata(), before.get_xydata())
    shown = visible(np.geomspace(1.0, 1e-9, 10_000))
    assert set(range(10)) <= set(shown), "most of what is shown stands at the beginning"
    assert shown.max() == 9_999
