"""A piano roll within the report."""

import re

import numpy as np
import pytest

from elman.drawing.piano_roll import bars, draw_roll


def test_bars_are_the_roll():
    draw = np.random.default_rng(0)
    roll = [sorted(set(draw.integers(40, 60, size=4).tolist())) for _ in range(30)]
    seen = [set() for _ in roll]
    for start, end, pitch in bars(roll):
        for step in range(start, end):
            assert pitch not in seen[step]
            seen[step].add(pitch)
        assert start == 0 or pitch not in roll[start - 1]
    assert [sorted(notes) for notes in seen] == roll


@pytest.mark.parametrize("roll", [[], [[]], [[60]], [[21, 108]] * 40])
def test_any_roll_is_drawn(roll):
    svg = str(draw_roll(roll, "<name>"))
    assert svg.count("<rect") == len(list(bars(roll)))
    assert "&lt;name&gt;" in svg
    x, y, width, height = map(int, re.search(r'viewBox="([^"]*)"', svg)[1].split())
    for rect in re.findall(r'<rect x="([^"]*)" y="([^"]*)" width="([^"]*)"', svg):
        left, top, wide = map(float, rect)
        assert x <= left <= left + wide <= width
        assert y <= top <= height
