"""The record of a claim: what it holds, and what cannot be read as one."""

import json
import math

import pytest

from elman.errors import UserError
from elman.study.claim import Measurement, Power, at_scale
from elman.study.comparison import together
from elman.study.record import mean_course, read_record, record, write_record
from elman.study.store import Plan, PlannedRun, Trial
from elman.study.summary_files import remarks
from support import claims, text_runs
from support.claims import row


def made(folder, runs, errors, trials=None, **changes):
    """The record of a claim with these errors of arm a; b has an error of 3."""
    claim = claims.claim("toy", claims.Error(1.0), claims.Error(3.0), **changes)
    figures = {"a": errors, "b": [3.0] * len(errors)}
    measurements = {label: [Measurement({"error": value}, {}) for value in each] for label, each in figures.items()}
    plain = {label: [one.figures for one in each] for label, each in measurements.items()}
    verdicts = [comparison.verdict(plain) for comparison in claim.comparisons]
    planned = Plan(claim, "small", tuple(range(1, len(errors) + 1)), runs, trials or {}, {}, 0.0)
    return record(planned, measurements, verdicts, together(claim.sentence, verdicts), folder / "toy.html")


NO_RUNS = {"a": [], "b": []}


def test_what_is_written_is_read(tmp_path):
    one = made(tmp_path, NO_RUNS, [1.0, 1.1, 1.2], seeds=Power(effect=0.02, deviation=0.01))
    write_record(tmp_path / "toy.json", one)
    assert read_record(tmp_path / "toy.json") == one
    assert (one.line, one.answer, one.seeds, one.effect) == ("toy: holds", "holds", [1, 2, 3], 0.02)
    assert (one.headline, one.metrics) == ("error", {"error": "mean error"})
    assert one.arms["a"].published == "1.5 ± 0.1"
    assert one.arms["a"].figures["error"].by_seed == [1.0, 1.1, 1.2]
    assert one.arms["a"].figures["error"].words == "1.1000 ± 0.1000"
    assert one.minutes is None
    ratio, bound = one.comparisons
    assert ratio.p_value == pytest.approx(ratio.judgement["p_value"])
    assert bound.p_value is None
    assert bound.judgement is None


def test_the_course_is_the_mean_over_the_seeds_where_all_have_it():
    curves = [
        {"hours": [1.0, 2.0, 3.0, 4.0], "error": [8.0, math.inf, 6.0]},
        {"hours": [2.0, 2.0, 5.0], "error": [4.0, 1.0, 3.0, 2.0]},
    ]
    measurements = [Measurement({}, one) for one in curves]
    assert mean_course(("hours", "error"), measurements) == [(1.5, 6.0), (4.0, 4.5)]
    assert mean_course(("hours", "loss"), measurements) == []
    assert mean_course(None, measurements) == []


def test_figures_that_are_not_finite_are_null(tmp_path):
    one = made(tmp_path, NO_RUNS, [math.inf, 1.0])
    write_record(tmp_path / "toy.json", one)
    again = read_record(tmp_path / "toy.json")
    assert again.arms["a"].figures["error"].by_seed == [None, 1.0]
    assert again.arms["a"].figures["error"].values == [math.inf, 1.0]
    assert again.arms["a"].figures["error"].words == "inf"
    assert again.comparisons[0].judgement["mean"] is None


def test_what_was_never_measured_is_unknown_and_not_infinite(tmp_path):
    """A radius that was not logged, beside that of a training that diverged; both are null in JSON."""
    one = made(tmp_path, NO_RUNS, [math.nan, math.inf, 1.0])
    write_record(tmp_path / "toy.json", one)
    again = read_record(tmp_path / "toy.json").arms["a"].figures["error"]
    assert again.by_seed == [None, None, 1.0]
    assert math.isnan(again.values[0])
    assert again.values[1:] == [math.inf, 1.0]
    assert again.words == "unknown"
    assert one.comparisons[1].figures == "a unknown against 100, inf against 100, 1 against 100"


def test_minutes_versions_and_processors_are_those_of_the_runs(tmp_path):
    """Seed 2 is one run of both arms, and the first run has no log."""
    folders = {"one": tmp_path / "one", "two": tmp_path / "two", "shared": tmp_path / "shared"}
    claims.write_log(folders["two"], [2.0, 1.0], seconds=30.0)
    claims.write_log(folders["shared"], [2.0, 1.0, 0.5], seconds=60.0)
    (folders["two"] / "environment.json").write_text(json.dumps({"elman": "0.1.0"}))
    (folders["shared"] / "environment.json").write_text(
        json.dumps({"elman": "0.1.1", "commit": "abc", "processor": "a GPU"})
    )
    planned = {name: PlannedRun(name, text_runs.recipe(), folder) for name, folder in folders.items()}
    runs = {"a": [planned["one"], planned["shared"]], "b": [planned["two"], planned["shared"]]}
    one = made(tmp_path, runs, [1.0, 1.1])
    assert one.arms["a"].minutes == [None, 3.0]
    assert one.arms["b"].minutes == [1.0, 3.0]
    assert one.training == {"two": 1.0, "shared": 3.0}
    assert one.minutes == 4.0
    assert one.versions == ["0.1.0", "0.1.1, commit abc"]
    assert one.processors == ["a GPU"]
    assert " ".join(remarks(one)).endswith("4.0 minutes, by a GPU. Trained by elman 0.1.0, 0.1.1, commit abc.")


def test_trials_are_recorded_and_their_minutes_count(tmp_path):
    """A trial that diverged has no loss."""
    folders = [claims.write_log(tmp_path / name, [2.0, 1.0]) for name in ("good", "bad")]
    (folders[0] / "results.json").write_text(json.dumps([row("valid", 1.5), row("test", 9.0)]))
    (folders[1] / "diverged.json").write_text("{}")
    run = PlannedRun("a", text_runs.recipe(), claims.write_log(tmp_path / "run", [2.0]))
    tried = [Trial((f"lr={n}",), PlannedRun("a", text_runs.recipe(), folder)) for n, folder in enumerate(folders)]
    one = made(tmp_path, {"a": [run], "b": []}, [1.0], trials={"a": tried})
    assert [trial.loss for trial in one.arms["a"].grid] == [1.5, None]
    assert [trial.settings for trial in one.arms["a"].grid] == [["lr=0"], ["lr=1"]]
    assert one.minutes == 2.5
    write_record(tmp_path / "toy.json", one)
    assert read_record(tmp_path / "toy.json") == one
    assert json.loads((tmp_path / "toy.json").read_text())["arms"]["a"]["grid"][0]["valid loss"] == 1.5


def test_other_files_are_refused_in_one_line(tmp_path):
    path = tmp_path / "toy.json"
    path.write_text(json.dumps({"name": "toy", "verdict": "holds"}))
    with pytest.raises(UserError, match="not the record of a claim, or of another version"):
        read_record(path)
    path.write_text("{")
    with pytest.raises(UserError, match="damaged"):
        read_record(path)


def test_files_are_named_by_the_scale():
    assert [at_scale("toy", scale) for scale in ("quick", "small", "paper")] == ["toy-quick", "toy", "toy-paper"]
