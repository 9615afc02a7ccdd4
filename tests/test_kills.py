"""The harness of benchmarks/kills.py: a few kills of a training, and what counts as a difference."""

import json
import runpy
import sys
from pathlib import Path

import pytest

from support.interruption import begun, ended

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "kills.py"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="descendants are waited for by prctl")
def test_a_killed_training_is_completed_as_if_nothing_had_happened(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--only", "series", "--count", "2", "--json"])
    child = begun(lambda: runpy.run_path(str(SCRIPT))["main"](), tmp_path / "log")
    assert ended(child) == 0
    found = json.loads((tmp_path / "log").read_text().splitlines()[-1])
    assert found["kinds"]["series"]["differences"] == []
    assert found["kills"] == 2


def test_a_line_twice_in_the_metrics_is_a_difference_and_another_time_is_not(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    script = runpy.run_path(str(SCRIPT))
    lines = [{"kind": "train", "step": 5, "loss": 2.5, "seconds": 0.5}, {"kind": "event", "event": "resume", "step": 5}]
    path, found = tmp_path / "metrics.jsonl", []
    for written in (lines[:1], lines, [{**lines[0], "seconds": 9.0}], lines[:1] * 2):
        path.write_text("".join(f"{json.dumps(line)}\n" for line in written))
        found.append(script["content"](path))
    assert found[0] == found[1] == found[2] != found[3]
    (told,) = script["differences"]({"metrics.jsonl": found[0]}, {"metrics.jsonl": found[3]})
    assert told.startswith('metrics.jsonl:2: {"kind": "train"')
    assert script["differences"]({"a": "1"}, {"b": "1"}) == ["a: missing", "b: new"]
