"""Dots by group, as a file and in a page."""

import math
import xml.etree.ElementTree as ElementTree

from matplotlib.text import Text

from elman.drawing.dots import Row, draw_dots
from elman.drawing.style import SERIES, svg, svg_file, write_drawing

ROWS = [Row("one", [10.0, 11.0, math.inf], published=9.5), Row("two", [12.0])]


def dots(figure):
    """The x of all markers."""
    return sorted(x for line in figure.axes[0].lines if line.get_marker() in ("o", "D") for x in line.get_xdata())


def test_every_finite_value_is_a_dot_and_the_published_one_a_diamond():
    figure = draw_dots(ROWS, "error")
    assert dots(figure) == [9.5, 10.0, 11.0, 12.0]
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["one", "two"]
    assert figure.axes[0].get_xscale() == "linear"


def test_a_mean_is_drawn_where_all_values_are_finite():
    """That of the runs which did not diverge would flatter the group."""

    def means(row):
        return [line.get_xdata()[0] for line in draw_dots([row], "error").axes[0].lines if line.get_marker() == "None"]

    assert means(Row("one", [10.0, 11.0])) == [10.5]
    assert means(Row("one", [10.0, 11.0, math.inf])) == means(Row("one", [10.0, math.nan, 11.0])) == []


def test_published_values_far_away_are_left_out():
    far = [Row("one", [10.0, 11.0], published=100.0), Row("two", [12.0], published=11.5)]
    assert dots(draw_dots(far, "error")) == [10.0, 11.0, 12.0]
    assert dots(draw_dots([Row("one", [10.0], published=100.0)], "error")) == [10.0, 100.0], "nothing to tell apart"


def test_values_that_span_much_have_a_logarithmic_axis():
    assert draw_dots([Row("one", [1.0]), Row("two", [100.0])], "error").axes[0].get_xscale() == "log"
    assert draw_dots([Row("one", [0.0]), Row("two", [100.0])], "error").axes[0].get_xscale() == "linear"


def test_a_label_with_dollar_signs_is_no_formula():
    page = svg(draw_dots([Row("$$", [1.0]), Row("a$_{$b", [2.0])], "$^"), "p", "t", "d")
    assert all(f">{label}<" in page for label in ("$$", "a$_{$b", "$^"))


def test_a_file_of_pixels_has_no_formulas_either(tmp_path):
    figure = draw_dots([Row("a$_{$b", [1.0]), Row("$\\foo$", [2.0])], "$x$")
    write_drawing(tmp_path / "dots.png", figure, "p", "t", "d")
    assert not any(text.get_parse_math() for text in figure.findobj(Text))


def test_nothing_finite_is_an_empty_figure():
    assert dots(draw_dots([Row("one", [math.inf])], "error")) == []
    assert "<svg" in svg(draw_dots([Row("one", [math.inf])], "error"), "p", "t", "d")


def test_a_file_has_a_size_a_background_and_its_own_colours():
    text = svg_file(draw_dots(ROWS, "error"), "p", "a < b", "dots")
    root = ElementTree.fromstring(text.encode())
    assert root.get("width")
    assert root.get("height")
    assert root[0].text == "a < b: dots"
    assert SERIES[0] in text
    assert "var(" not in text
    assert "#ffffff" in text
    assert text == svg_file(draw_dots(ROWS, "error"), "p", "a < b", "dots")


def test_numbers_of_an_axis_are_those_of_its_ticks():
    """Values that differ in the seventh digit had the same number at every tick."""
    figure = draw_dots([Row("one", [1000.0001, 1000.0002]), Row("two", [1000.0004])], "error")
    figure.draw_without_rendering()
    shown = [(tick.get_text(), tick.get_position()[0]) for tick in figure.axes[0].get_xticklabels()]
    assert len({text for text, _ in shown}) == len(shown) > 2
    assert all(abs(float(text.replace(",", "")) - place) < 1e-6 for text, place in shown)
