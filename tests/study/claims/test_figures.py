"""Drawings of a reproduction: validation by epoch, and published figures."""

import math
from types import SimpleNamespace

import pytest

from elman.study.figures import drawings, published_number, training_curves, validation
from elman.study.record import ArmRecord, FigureRecord
from elman.study.store import PlannedRun
from support import claims, text_runs


def runs(tmp_path, **arms):
    """Runs of arms with the nats per token of their validations, averaged from an epoch on."""
    return {
        arm: [
            PlannedRun(arm, text_runs.recipe(), claims.write_log(tmp_path / f"{arm}{index}", nats, averaged))
            for index, (nats, averaged) in enumerate(seeds)
        ]
        for arm, seeds in arms.items()
    }


def test_a_line_per_seed_and_their_geometric_mean(tmp_path):
    found = runs(tmp_path, a=[([3.0, 2.0, 1.5], None), ([3.2, 2.4], None)], b=[([2.0, 1.0], None)])
    plot = validation("toy", found)
    seeds = [curve for curve in plot.curves if curve.form == "running"]
    means = [curve for curve in plot.curves if curve.form == "checks"]
    assert [curve.series for curve in seeds] == [0, 0, 1]
    assert [curve.series for curve in means] == [0, 1]
    assert list(means[0].x) == [1.0, 2.0], "as far as all seeds go"
    assert list(means[0].y) == pytest.approx([math.exp(3.1), math.exp(2.2)])
    assert list(seeds[0].y) == pytest.approx([math.exp(3.0), math.exp(2.0), math.exp(1.5)])
    assert plot.quantity == "perplexity"
    assert not plot.rings


def test_averaging_begins_at_a_ring(tmp_path):
    plot = validation("toy", runs(tmp_path, a=[([3.0, 2.0, 1.5], 2), ([3.0, 2.5, 2.0], 3)], b=[([2.0, 1.0], None)]))
    assert [(x, series) for x, _, series in plot.rings] == [(2.0, 0), (3.0, 0)]
    assert [y for _, y, _ in plot.rings] == pytest.approx([math.exp(2.0), math.exp(2.0)])


def test_runs_without_a_log_have_no_curve(tmp_path):
    one = runs(tmp_path, a=[([3.0, 2.0], None)])
    none = {"b": [PlannedRun("b", text_runs.recipe(), tmp_path / "missing")]}
    assert training_curves("toy", none) is None
    assert len(validation("toy", none | one).curves) == 2
    assert [curve.series for curve in validation("toy", none | one).curves] == [1, 1], "colours are those of the arms"
    assert "<svg" in training_curves("toy", one)


def test_a_course_is_drawn_if_every_arm_has_one():
    def arm(course):
        return ArmRecord(None, {"error": FigureRecord(1.0, 0.0, [1.0])}, course=course)

    def drawn(*courses):
        arms = {f"arm {index}": arm(course) for index, course in enumerate(courses)}
        return drawings(SimpleNamespace(name="toy", cost=None, course=("seconds", "error so far"), arms=arms))

    line = [(1.0, 3.0), (2.0, 2.0)]
    assert not drawn(line, [])
    (found,) = drawn(line, line)
    assert (found.name, found.shows, found.marks) == ("toy-course", "error so far against seconds", "a line per arm")
    assert [text.get_text() for text in found.figure.axes[0].texts] == ["arm 0", "arm 1"]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("57.0 ± 0.6", 57.0), ("1,240 ± 80", 1240.0), ("56.4 (PTB)", 56.4), ("10,000", 10_000.0), ("57.0", 57.0),
        ("402 = d + 2 (thesis)", None), ("57.0 to 50.5 (test)", None), ("9,980 (thesis), 10,000 (DOC)", None),
        ("10^-4.2, 1,000 units", None), ("", None), (None, None),
    ],
)  # fmt: skip
def test_published_figures_that_are_a_number(text, number):
    assert published_number(text) == number
