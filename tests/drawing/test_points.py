"""Labelled points."""

import itertools

import pytest
from matplotlib.transforms import Bbox

from elman.drawing.points import Point, draw_points
from elman.drawing.style import svg


def names(figure):
    return {text.get_text(): text for text in figure.axes[0].texts}


def test_a_name_with_dollar_signs_is_no_formula():
    figure = draw_points([Point("$$", 1.0, 10.0), Point("$x_{$", 2.0, 20.0)], "cost in $", "reached in $")
    page = svg(figure, "p", "t", "d")
    assert all(f">{name}<" in page for name in ("$$", "$x_{$", "cost in $", "reached in $"))


def test_every_point_is_drawn_with_its_name():
    figure = draw_points([Point("one", 1.0, 10.0), Point("two", 2.0, 20.0)], "cost", "reached")
    assert [(*line.get_xdata(), *line.get_ydata()) for line in figure.axes[0].lines] == [(1.0, 10.0), (2.0, 20.0)]
    assert list(names(figure)) == ["one", "two"]
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("cost", "reached")
    assert figure.axes[0].get_xscale() == "linear"


def test_a_trail_leads_to_its_point_and_is_cut_far_above_all():
    points = [Point("one", 3.0, 10.0, [(1.0, 500.0), (2.0, float("inf")), (2.5, 12.0)]), Point("two", 2.0, 20.0)]
    axes = draw_points(points, "cost", "reached").axes[0]
    dot, trail, _ = axes.lines
    assert (*trail.get_xdata(), *trail.get_ydata()) == (1.0, 2.5, 3.0, 500.0, 12.0, 10.0)
    assert trail.get_color() == dot.get_color()
    assert axes.get_ylim() == (9.0, 26.0)


def test_steps_are_dots_and_are_shown_whole():
    points = [Point("one", 3.0, 10.0, [(0.1, 500.0), (2.5, 12.0)]), Point("two", 2.0, 20.0)]
    axes = draw_points(points, "cost", "reached", steps=True).axes[0]
    dot, trail, _ = axes.lines
    assert (*trail.get_xdata(), *trail.get_ydata()) == (0.1, 2.5, 3.0, 500.0, 12.0, 10.0)
    assert trail.get_marker() == "o"
    assert trail.get_color() == dot.get_color()
    assert axes.get_ylim()[1] > 500.0
    assert axes.get_xscale() == "log", "the first steps cost a thirtieth of the last"


def test_costs_that_span_much_have_a_logarithmic_axis():
    assert draw_points([Point("one", 1.0, 1.0), Point("two", 10.0, 1.0)], "x", "y").axes[0].get_xscale() == "log"
    assert draw_points([Point("one", 0.0, 1.0), Point("two", 10.0, 1.0)], "x", "y").axes[0].get_xscale() == "linear"


@pytest.mark.parametrize("step", [0.0, 0.02])
def test_names_of_neighbours_do_not_cover_each_other(step):
    """Three on one place or nearly so, and two far from them that set the scale."""
    crowd = [Point(f"neighbour {number}", 5.0 + step * number, 5.0) for number in range(3)]
    figure = draw_points([Point("low", 0.0, 0.0), Point("high", 10.0, 10.0), *crowd], "x", "y")
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in names(figure).values()]
    assert all(Bbox.intersection(one, other) is None for one, other in itertools.combinations(boxes, 2))


def test_nothing_to_draw_is_an_empty_figure():
    assert not draw_points([], "x", "y").axes[0].lines
