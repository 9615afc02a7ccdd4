"""Plans of claims: written before training, recognised by their digest, and what is judged after a verdict."""

import json
import math
import shutil

import msgspec
import pytest

from elman.cli import main
from elman.study import claims as registry
from elman.study.planning import PlanRecord
from elman.study.statistics import detectable
from support.claims import Error, claim


@pytest.fixture
def reproduce(tmp_path, monkeypatch, capsys):
    made = claim("toy", Error(1.0, 0.3), Error(1.4, 0.05))
    monkeypatch.setitem(registry.CLAIMS, "toy", made)

    def run(*options):
        assert main(["reproduce", "toy", "--out", str(tmp_path), "--threads", "1", *options]) == 0
        capsys.readouterr()
        return json.loads((tmp_path / "toy.plan.json").read_text()), json.loads((tmp_path / "toy.json").read_text())

    return run


def test_a_plan_is_written_once_before_anything_is_computed(reproduce):
    plans, made = reproduce()
    assert [(one["seeds"], one["fresh"], one["trained"]) for one in plans] == [([1, 2, 3], [1, 2, 3], 0)]
    assert plans[0]["content"]["comparisons"][0]["statement"] == "error of a is lower than of b"
    assert plans[0]["content"]["margin of no difference"] == 0.02
    assert made["plans"] == plans
    assert reproduce()[0] == plans, "the same plan again is the same plan"


def test_seeds_added_after_a_verdict_are_judged_alone(reproduce, tmp_path):
    reproduce()
    plans, made = reproduce("--seeds", "6")
    assert (plans[1]["seeds"], plans[1]["fresh"], plans[1]["trained"]) == ([1, 2, 3, 4, 5, 6], [4, 5, 6], 6)
    assert plans[1]["after"].endswith("seeds 1 to 3")
    assert made["comparisons"][0]["judgement"]["count"] == 3
    assert len(made["arms"]["a"]["figures"]["error"]["by_seed"]) == 6, "all are shown"
    deviation = made["comparisons"][0]["judgement"]["deviation"]
    detected = f"{math.exp(detectable(3, deviation)):.4g}"
    assert f"<td>{detected}</td>" in (tmp_path / "toy.html").read_text(), "by the three seeds that were judged"


def test_fresh_seeds_can_be_asked_for(reproduce):
    plans, made = reproduce("--seeds", "4-6")
    assert made["seeds"] == plans[0]["fresh"] == [4, 5, 6]


def test_a_stored_record_is_continued_where_it_was_copied(reproduce, tmp_path):
    """Without the runs and the file of plans; seeds of every earlier plan are known, not those of the last alone."""
    reproduce()
    reproduce("--seeds", "4-6")
    for path in tmp_path.iterdir():
        if path.name != "toy.json":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    plans, made = reproduce("--seeds", "2-8")
    assert [one["seeds"] for one in plans] == [[1, 2, 3], [4, 5, 6], [2, 3, 4, 5, 6, 7, 8]]
    assert plans[2]["fresh"] == [7, 8]
    assert plans[2]["after"].endswith("seeds 4 to 6")
    assert made["plans"] == plans
    assert made["comparisons"][0]["judgement"]["count"] == 2


def test_seeds_of_a_record_from_before_plans_were_kept_are_known(reproduce, tmp_path):
    _, made = reproduce()
    made["plans"] = [msgspec.to_builtins(PlanRecord(seeds=[1, 2, 3], fresh=[1, 2, 3]))]
    (tmp_path / "toy.json").write_text(json.dumps(made))
    (tmp_path / "toy.plan.json").unlink()
    plans, _ = reproduce("--seeds", "5")
    assert plans[1]["fresh"] == [4, 5]


@pytest.mark.parametrize("text", ["0", "3-2", "x", "4-", "-3"])
def test_seeds_that_cannot_be_read(text, capsys):
    assert main(["reproduce", "rank-bound", f"--seeds={text}"]) == 2
    assert "--seeds" in capsys.readouterr().err


def test_a_plan_that_was_changed_afterwards_is_found_out(reproduce):
    (plan,), _ = reproduce()
    assert "another digest" not in msgspec.convert(plan, PlanRecord).words
    plan["content"]["comparisons"][0]["high"] = 1.02
    assert "another digest" in msgspec.convert(plan, PlanRecord).words
