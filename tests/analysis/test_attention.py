"""The heat map of attention: a cell for every pair of words, as dark as its weight, and what is said of it."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from elman.drawing.heat_map import draw_attention
from elman.kinds.pairs.attention import entropy, verdict

WEIGHTS = [[1.0, 0.0], [0.25, 0.75], [0.5, 0.5]]


def looks(weights):
    return SimpleNamespace(attention=np.array(weights, dtype=np.float32))


def test_a_cell_for_every_pair():
    svg = draw_attention(["a", "<b>"], ["x", "y", "<eos>"], WEIGHTS, "looks")
    assert re.findall(r'fill-opacity="([\d.]+)"', svg) == ["1.00", "0.04", "0.25", "0.75", "0.50", "0.50"]
    assert "y attends to &lt;b&gt;: 75 %" in svg
    assert svg.count("<text") == 5
    assert "<b>" not in svg


def test_wide_letters_get_more_room():
    sizes = [
        float(re.search(r'viewBox="0 0 (\d+)', draw_attention(["a"], [word, "b", "c"], [[1.0]] * 3, "looks"))[1])
        for word in ("neko", "猫の手の")
    ]
    assert sizes[1] > sizes[0] + 10


def test_the_verdict_says_how_narrow_the_looks_are():
    assert entropy(looks([[0.5, 0.5], [0.5, 0.5]])) == pytest.approx(1.0)
    assert "2.0 source words" in verdict([looks([[0.5, 0.5], [0.5, 0.5]])])
    sharp, flat = [1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]
    assert "1.4 source words" in verdict([looks([sharp] * 3), looks([flat])])  # 2 to (3 * 0 + 2) / 4
    assert "in 0 % of the steps" in verdict([looks([[0.0, 1.0], [1.0, 0.0]])])
    assert "blank" in verdict([])
