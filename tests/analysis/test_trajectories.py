"""Drawings of the state along sentences: of one unit there is no plane."""

import numpy as np
import pytest

from elman.analysis import trajectories
from elman.analysis.agreement import principal_components
from elman.analysis.trajectories import figures, write_trajectories_page

WORDS = ["the", "cat", "sat"]


@pytest.mark.slow
@pytest.mark.parametrize(("units", "drawings"), [(1, 1), (2, 2), (5, 2)])
def test_a_plane_needs_two_units(tmp_path, units, drawings):
    states = np.random.default_rng(0).normal(size=(3, units))
    components = principal_components([states])
    assert len(figures(components, WORDS, states, "a")) == drawings
    walks = [(WORDS, states), (WORDS[:2], states[:2])]
    page = write_trajectories_page(tmp_path / "a.html", components, walks, run="r", level="the last layer", text="q")
    assert ("Together" in page.read_text()) == (units > 1)


def test_words_along_the_axis_are_slanted_and_each_component_is_named_at_its_end(monkeypatch):
    drawn = {}
    monkeypatch.setattr(trajectories, "svg", lambda figure, name, *_: drawn.setdefault(name, figure.axes[0]))
    states = np.random.default_rng(0).normal(size=(3, 5))
    components = principal_components([states])
    figures(components, WORDS, states, "a")
    plane, steps = drawn["plane-a"], drawn["steps-a"]
    assert [(one.get_text(), one.get_rotation()) for one in steps.get_xticklabels()] == [(word, 45) for word in WORDS]
    points = components.project(states)
    assert [(one.get_text(), one.xy) for one in steps.texts] == [
        (str(number), (2, point)) for number, point in enumerate(points[-1, : len(steps.texts)], start=1)
    ]
    assert [one.get_text() for one in plane.texts] == ["1 the", "2 cat", "3 sat"]
    assert plane.get_xlabel() == f"component 1 ({100 * components.shares[0]:.0f} %)"
    assert plane.get_ylabel() == f"component 2 ({100 * components.shares[1]:.0f} %)"
