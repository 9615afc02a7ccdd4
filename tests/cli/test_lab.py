"""elman lab, on outcomes that are there already."""

import json
import shlex
import sys

import msgspec
import pytest

from elman.cli import main
from elman.errors import UserError
from elman.jobs.launching import Launch
from elman.study.lab.trial import Trial, TrialResult
from support.commands import is_understood


def test_lab_lists_tasks_and_cells(capsys):
    assert main(["lab", "tasks", "--json"]) == 0
    assert "adding" in [task["name"] for task in json.loads(capsys.readouterr().out)]
    assert main(["lab", "cells"]) == 0
    assert "rung-forget" in capsys.readouterr().out


@pytest.mark.parametrize("action", ["tasks", "cells", "compare", "lesson", "heads"])
def test_help_has_an_example_that_is_understood(action, capsys):
    assert main(["lab", action, "--help"]) == 0
    text, _, example = capsys.readouterr().out.partition("Arguments:")[0].partition("Options:")[0].partition("Example:")
    assert example, text
    assert is_understood(shlex.split(example)[1:])


@pytest.mark.slow
def test_a_comparison_of_what_is_there(tmp_path, capsys):
    for cell in ("elman", "gru"):
        trial = Trial(task="recall", cell=cell, span=8, budget=5.0)
        found = TrialResult(
            trial=trial, solved=True, error=0.0, steps=25, seconds=1.0, parameters=9, curve=[(0, 0.8), (25, 0.0)],
            flow_before=[1.0, 0.1], flow_after=[1.0, 0.9],
        )  # fmt: skip
        (tmp_path / "trials").mkdir(exist_ok=True)
        (tmp_path / "trials" / f"{trial.name}.json").write_bytes(msgspec.json.encode(found))
    words = ["lab", "compare", "--tasks", "recall", "--cells", "elman,gru", "--seeds", "1", "--budget", "5"]
    assert main([*words, "--longest", "8", "--out", str(tmp_path)]) == 0
    assert "recall: elman, gru to span 8" in capsys.readouterr().out
    assert main([*words, "--longest", "8", "--out", str(tmp_path), "--json"]) == 0
    assert [row["spans"] for row in json.loads(capsys.readouterr().out)["rows"]] == [[8], [8]]
    assert (tmp_path / "report.html").exists()


def test_lab_mistakes_are_one_line(tmp_path, monkeypatch, capsys):
    for words, message in (
        (["--tasks", "sorting"], "there is no task sorting"),
        (["--cells", "perceptron"], "there is no cell perceptron"),
        (["--rules", "hebb"], "there is no rule hebb"),
        (["--seeds", "0"], "--seeds is 0"),
        (["--longest", "2"], "--longest is 2"),
        (["--size", "512", "--rules", "rtrl"], "training.rule.max_gb"),
        (["--span", "1"], "--span is 1"),
        (["--tasks", "mackey-glass", "--longest", "30000"], "--longest is 30000; the task mackey-glass has spans"),
        (["--cells", " , "], "--cells is empty"),
        (["--lr", "nan"], "--lr is nan"),
        (["--budget", "nan"], "--budget is nan"),
        (["--tasks", "recall", "--cells", "echo-state", "--rules", "bptt+0.1"], "trained recurrent weights"),
    ):
        assert main(["lab", "compare", *words, "--out", str(tmp_path / "new")]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["lab", "compare", "--launcher", "ray", "--out", str(tmp_path / "new")]) == 2
    assert "--launcher ray needs the package ray" in capsys.readouterr().err

    def refuse(launch, tell):
        raise UserError(f"there is no cluster for {launch.launcher}")

    monkeypatch.setattr(Launch, "begin", refuse)
    assert main(["lab", "compare", "--out", str(tmp_path / "new")]) == 2
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    assert main(["lab", "compare", "--out", str(tmp_path / "file")]) == 2
    assert "file: cannot be written (File exists); choose another folder" in capsys.readouterr().err
