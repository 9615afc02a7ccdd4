import itertools
import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from elman.drawing.plots import Curve, Mark, Plot, draw, is_empty, thin
from elman.drawing.style import SERIES
from support.pairwise import every_value


def plot(*curves: Curve, **options) -> Plot:
    fields = {
        "name": "p",
        "title": "Perplexity",
        "description": "falls",
        "x_label": "epochs",
        "quantity": "perplexity",
    }
    return Plot(curves=curves, **{**fields, **options})


CHECKS = Curve([1, 2, 3], [300.0, 120.0, 90.0], 0, "checks")


def texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg.replace("xlink:href", "href"))
    return [element.text or "" for element in root.iter() if element.tag.endswith("text")]


def test_svg_is_well_formed_transparent_and_named():
    svg = draw(plot(CHECKS))
    root = ElementTree.fromstring(svg.replace("xlink:href", "href"))
    assert root.get("role") == "img"
    assert root.get("width") is None
    titles = [element for element in root.iter() if element.tag.endswith("title")]
    assert titles[0].text == "Perplexity: falls"
    assert root.get("aria-labelledby") == titles[0].get("id")
    assert "#ffffff" not in svg


def test_colours_are_the_style_sheets():
    svg = draw(plot(CHECKS, Curve([0, 3], [400.0, 80.0], 1)))
    assert "var(--series-0)" in svg
    assert "var(--series-1)" in svg
    assert not any(colour in svg for colour in SERIES)


def test_ids_of_two_plots_differ():
    def ids(svg: str) -> set[str]:
        return {element.get("id") for element in ElementTree.fromstring(svg.replace("xlink:href", "href")).iter()} - {
            None
        }

    assert not ids(draw(plot(CHECKS))) & ids(draw(plot(CHECKS, name="q")))


def test_references_stay_within_the_plot():
    svg = draw(plot(CHECKS))
    for reference in ("url(#", 'href="#'):
        for target in svg.split(reference)[1:]:
            assert f'id="{target.split(")")[0].split(chr(34))[0]}"' in svg


def test_drawing_is_repeatable():
    assert draw(plot(CHECKS)) == draw(plot(CHECKS))


def test_title_is_escaped():
    assert "<script>" not in draw(plot(CHECKS, title="<script>alert(1)</script>"))


def test_labels_are_escaped_and_dollars_are_no_formula():
    svg = draw(plot(CHECKS, levels=[Mark(100.0, "<b>$x^2$")], marks=[Mark(2, "<script>$")]))
    assert "<script>" not in svg
    assert "<b>$x^2$ 100" in texts(svg)


def test_levels_far_from_the_curves_are_left_out():
    svg = draw(plot(CHECKS, levels=[Mark(100.0, "near"), Mark(9000.0, "far"), Mark(2.0, "below")]))
    assert "near 100" in texts(svg)
    assert not any(text.startswith(("far", "below")) for text in texts(svg))


@pytest.mark.parametrize(
    ("values", "level"), [([60.0, 58.0], 57.3), ([60.0], 54.0), ([600.0, 58.0], 30.0), ([-5.0, -6.0], -6.4)]
)
def test_a_level_below_the_curves_lies_within_the_axis(values, level, monkeypatch):
    """Its name stood below the axis, and the space for it left no room for the curves."""
    figures = []
    monkeypatch.setattr("elman.drawing.plots.svg", lambda figure, *_: figures.append(figure))
    curve = Curve(range(len(values)), values, 0, "checks")
    draw(plot(curve, levels=[Mark(level, "near"), Mark(-1000.0, "far")]))
    (axes,) = figures[0].axes
    assert [text.get_text().partition(" ")[0] for text in axes.texts] == ["near"]
    assert axes.get_ylim()[0] < level < axes.get_ylim()[1]


def test_losses_below_zero_are_within_the_axis(monkeypatch):
    """Of densities; the axis was upside down and had no point of the curves."""
    figures = []
    monkeypatch.setattr("elman.drawing.plots.svg", lambda figure, *_: figures.append(figure))
    draw(plot(Curve([1, 2], [-5.0, -6.0], 0, "checks"), Curve([1, 2], [-4.0, -5.5]), quantity="nll"))
    low, high = figures[0].axes[0].get_ylim()
    assert low < -6.0 < -4.0 < high


@pytest.mark.filterwarnings("error")
def test_a_single_loss_beyond_all_bounds_is_drawn():
    assert "<path" in draw(plot(Curve([1.0], [math.exp(700)], 0, "checks")))


@pytest.mark.filterwarnings("error")
def test_a_diverged_curve_leaves_the_axis():
    """The others are drawn as without it, on an axis that ends at its last loss within all bounds."""
    found = texts(draw(plot(CHECKS, Curve([1, 2], [400.0, math.exp(700)], 1, "checks"))))
    assert {"100", "200", "300"} <= set(found)
    assert not any("e+" in text for text in found)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([731.2, 731.0, 730.8], {"731.2", "731", "730.9"}),
        ([1002.2, 1001.6, 1001.0], {"1,002.2", "1,002", "1,001"}),
        ([-1.0001, -1.0003, -1.00045], {"-1.0001", "-1.00035"}),
        ([73.0, 71.0, 70.0], {"73", "70.5"}),
    ],
)
def test_numbers_of_an_axis_are_those_of_its_ticks(values, ticks):
    """Losses that hardly change had the same number at every tick."""
    shown = texts(draw(plot(Curve([1, 2, 3], values, 0, "checks"))))
    assert len(set(shown)) == len(shown)
    assert ticks <= set(shown)


def test_first_steps_do_not_fill_the_axis():
    ticks = texts(draw(plot(CHECKS, Curve([0.1, 1, 3], [9000.0, 200.0, 80.0], 1))))
    assert "5,000" not in ticks
    assert "300" in ticks


@pytest.mark.slow
@every_value(
    values=[[5.0, 5.0], [0.0, 0.0], [1e-9, 1e9], [math.nan, 3.0, 4.0], [math.inf, 3.0, 4.0], [-1, 2]],
    quantity=["perplexity", "rate", "norm", "speed"],
)
def test_unusual_values_are_drawn(values, quantity):
    root = ElementTree.fromstring(
        draw(plot(Curve(range(len(values)), values), quantity=quantity)).replace("xlink:href", "href")
    )
    lines = [element.get("d") for element in root.iter() if element.tag.endswith("path") and element.get("clip-path")]
    drawn = max(lines, key=len).split()
    assert drawn.count("L") == sum(map(math.isfinite, values)) - 1
    assert all(math.isfinite(float(part)) for part in drawn if part not in "MLz")


def test_a_plot_is_empty_without_a_curve_that_can_be_seen():
    assert is_empty(plot())
    assert is_empty(plot(Curve([1], [math.nan])))
    assert not is_empty(plot(Curve([1], [2.0])))
    assert is_empty(plot(Curve([1, 2], [math.nan, math.inf], 0, "checks")))
    assert not is_empty(plot(Curve([1], [2.0], 0, "checks")))


def test_thinning_keeps_the_product_of_perplexities():
    values = np.exp(np.random.default_rng(0).normal(5, 1, 1200))
    thinned = thin(list(enumerate(values)), geometric=True, limit=400)
    assert len(thinned) == 400
    assert np.mean(np.log([y for _, y in thinned])) == pytest.approx(np.mean(np.log(values)))


def test_a_long_run_stays_a_small_picture():
    x = np.linspace(0, 500, 50_000)
    assert len(draw(plot(Curve(x.tolist(), (100 + 50 * np.sin(x * 7)).tolist())))) < 60_000


@pytest.mark.parametrize("form", ["running", "checks"])
def test_a_single_point_is_seen(form):
    svg = draw(plot(Curve([2], [5.0], 0, form)))
    root = ElementTree.fromstring(svg.replace("xlink:href", "href"))
    assert any("--series-0" in element.get("style", "") for element in root.iter() if element.tag.endswith("use"))


def test_one_wrong_speed_does_not_set_the_axis():
    speeds = [4000.0 + n for n in range(50)]
    ticks = texts(draw(plot(Curve(range(51), [*speeds, 55_653.0]), quantity="speed")))
    numbers = [float(tick.replace(",", "")) for tick in ticks if tick.replace(",", "").isdigit()]
    assert 4000 <= max(numbers) <= 15_000


def test_labels_of_close_levels_do_not_cover_each_other():
    levels = [Mark(100.0 + one / 10, f"level {one}") for one in range(3)]
    root = ElementTree.fromstring(draw(plot(CHECKS, levels=levels)).replace("xlink:href", "href"))
    labels = [one for one in root.iter() if one.tag.endswith("text") and (one.text or "").startswith("level")]
    heights = sorted(float(one.get("y")) for one in labels)
    assert len(heights) == 3
    assert all(above + 10 < below for above, below in itertools.pairwise(heights))
