"""A piano roll within the report."""

import base64
import hashlib
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from elman.drawing import player
from elman.drawing.piano_roll import PianoRoll, bars, draw_roll, shown_range


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


@pytest.mark.parametrize(
    ("sounding", "expected"),
    [
        ([60, 64, 67] * 20, (60, 72)),
        ([60, 64, 67] * 20 + [21], (60, 72)),
        ([60, 64, 67] * 20 + [108], (60, 72)),
        ([60, 64, 67] * 20 + [50], (48, 72)),  # within an octave
        ([48] * 128 + [84] * 128, (48, 96)),
        ([60] * 9 + [21], (12, 72)),  # a tenth of all notes is no stray
    ],
)
def test_a_stray_note_does_not_stretch_the_drawing(sounding, expected):
    assert shown_range(sounding) == expected


def test_stray_notes_are_marked_at_the_edge():
    roll = [[60, 64] for _ in range(60)]
    plain = str(draw_roll(roll, "x"))
    roll[10], roll[20] = [60, 64, 21], [60, 64, 108]
    drawn = str(draw_roll(roll, "x"))
    assert re.search(r'viewBox="[^"]*"', drawn)[0] == re.search(r'viewBox="[^"]*"', plain)[0]
    assert drawn.count("<rect") == plain.count("<rect")
    assert re.findall(r"<path.*?<title>(.*?)</title></path>", drawn) == ["A0, steps 10 to 10", "C8, steps 20 to 20"]
    assert "notes from A0 to C8; 2 beyond C4 to C5, marked at the edge" in drawn


STUB = """
const started = [], buttons = [];
class Node {
  constructor(kind) {
    this.kind = kind; this.frequency = {};
    this.gain = { setValueAtTime() {}, linearRampToValueAtTime() {}, setTargetAtTime() {} };
  }
  connect(other) { return other; }
  setPeriodicWave() {}
  start(time) { started.push([time, this]); }
  stop(time) { this.stopped = time; }
}
globalThis.AudioContext = class {
  currentTime = 0;
  close() {}
  createPeriodicWave() {}
  createDynamicsCompressor() { return new Node(); }
  createGain() { return new Node(); }
  createOscillator() { return new Node(); }
};
const button = {
  hidden: true, dataset: { step: "0.25", notes: "0,2,69 2,4,81", name: "x" },
  addEventListener(_, does) { this.click = does; },
};
globalThis.document = { querySelectorAll: () => [button] };
"""
PRINTED = """
const seen = [button.hidden, button.textContent];
button.click(); seen.push(button.textContent, started.map(([time, node]) => [time, node.frequency.value]));
started.at(-1)[1].onended(); seen.push(button.textContent);
console.log(JSON.stringify(seen));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node, which runs the script of the page")
def test_the_button_plays_the_notes():
    done = subprocess.run(
        ["node", "-e", STUB + str(player.SCRIPT) + PRINTED], capture_output=True, text=True, check=True
    )
    hidden, before, playing, notes, after = json.loads(done.stdout)
    assert (hidden, before, playing, after) == (False, "Play x", "Stop x", "Play x")
    assert notes == [pytest.approx([0.1, 440]), pytest.approx([0.6, 880])]


def test_the_button_holds_the_bars():
    drawn = str(PianoRoll([[60], [60, 64]], 0.5).draw("figure", '<"x">'))
    assert 'data-notes="0,2,60 1,2,64" data-step="0.5" data-name="&lt;&#34;x&#34;&gt;" hidden' in drawn
    digest = base64.b64encode(hashlib.sha256(str(player.SCRIPT).encode()).digest()).decode()
    assert f"sha256-{digest}" == player.POLICY
