"""Dynamic evaluation of a run on music, by command."""

import json

import msgspec
import numpy as np
import pytest

from elman import config
from elman.cli import main
from elman.tasks.experiment import Experiment
from support import text_runs
from support.commands import refusal

COUNTS = {"train": 6, "valid": 3, "test": 3}


def write_music(path):
    """Pieces of chords that go up and come back."""
    draw, arrays = np.random.default_rng(0), {}
    for split, count in COUNTS.items():
        lengths = draw.integers(12, 30, size=count)
        roll = np.zeros((lengths.sum(), 88), np.uint8)
        for step, row in enumerate(roll):
            row[40 + step // 4 % 3 * 2 + np.array([0, 4, 7])] = 1
        arrays |= {f"{split}_roll": roll, f"{split}_len": lengths}
    np.savez(path, **arrays)
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("music")
    raw = msgspec.to_builtins(text_runs.recipe(epochs=1))
    raw["data"], raw["model"]["encoder"] = {"kind": "music"}, {"kind": "frames", "size": 8}
    raw["model"]["output"] = {"choice": {"kind": "bernoulli"}}
    raw["training"] |= {"window": {"length": 10}, "batch_size": 3}
    experiment = Experiment(config.parse_recipe(raw, "toy"), folder / "run", data=write_music(folder / "music.npz"))
    experiment.train()
    experiment.finish()
    return folder / "run"


def answer(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_a_run_on_music_adapts_is_tuned_and_reported(capsys, run, monkeypatch):
    monkeypatch.setattr("elman.tasks.tuning.RATES", {"rms": ((1e-4, 1e-3), (1e-3, 1e-2))})
    static = answer(capsys, "evaluate", run, "--json")
    still = answer(capsys, "evaluate", run, "--method", "dynamic", "--rule", "sgd", "--lr", 0, "--json")
    assert still["nll"] == pytest.approx(static["nll"], rel=1e-6)
    assert still["tokens"] == static["tokens"]
    row = answer(capsys, "evaluate", run, "--method", "dynamic", "--tune", "--tune-tokens", 40, "--json")
    assert row["nll"] < static["nll"]
    points = json.loads((run / "tuning.json").read_text())
    assert all(point["tokens"] <= 40 for point in points)
    rows = json.loads((run / "results.json").read_text())
    assert [row["method"] for row in rows] == ["static", "static", "dynamic"]
    assert main(["report", str(run)]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "cache"], "the cache is for symbols"),
        (["--method", "dynamic", "--rule", "sgd", "--skip-first"], "--skip-first does not belong to a run on music"),
    ],
)
@pytest.mark.slow
def test_what_music_has_not(capsys, run, arguments, message):
    assert main(["evaluate", str(run), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_music_has_no_temperature(capsys, run):
    assert "--temperature does not belong to a run on music" in refusal(capsys, "evaluate", run, "--temperature", "2")
