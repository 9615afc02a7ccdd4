"""Drawings of the state along sentences: of one unit there is no plane."""

import numpy as np
import pytest

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
