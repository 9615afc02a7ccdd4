"""Decay of the state after a kick, and the two commands that look into a run."""

import json
import math
from types import SimpleNamespace

import msgspec
import pytest
import torch

from elman import config
from elman.analysis import dynamics
from elman.analysis.dynamics import decay_rate, state_decay
from elman.cli import main
from elman.learning.constraint import ConstrainedCore
from elman.network.cores.core import build_core
from elman.report import folder
from elman.report.metrics import Train
from elman.tasks.experiment import Experiment
from support import networks, text_runs

UNTRAINED = {}
"""The validation loss of each run before training."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A constrained run that counts by both norms, and one that clips."""
    base = tmp_path_factory.mktemp("dynamics")
    corpus = text_runs.write_corpus(base / "corpus")
    constraint = {"kind": "spectral", "delta": 0.5, "method": "truncated", "compare_norms": True}
    kinds = {"constrained": {"constraint": constraint}, "clipped": {"log_spectrum": True}}
    for name, keys in kinds.items():
        made = text_runs.recipe(optimiser={"kind": "sgd", "lr": 1.0}, log_every=3, **keys)
        raw = msgspec.to_builtins(made, str_keys=True)
        raw["model"]["core"]["cell"] = {"kind": "gru", "reset": "before"}
        experiment = Experiment(config.parse_recipe(raw, "toy"), base / name, data=corpus)
        UNTRAINED[name] = experiment.task.validate(experiment.model).nll
        experiment.train()
    return base / "constrained", base / "clipped"


@pytest.mark.parametrize("delta", [0.2, 0.8, 1.4])
def test_the_state_decays_at_least_at_the_rate_of_the_thesis(delta):
    """Asymptotically at most 1 - delta / 4 a step, faster for a larger delta (Fig. 3.2)."""
    torch.manual_seed(0)
    core = networks.randomise(
        build_core(config.Stack(sizes=(20,), cell=config.GRU(reset="before"), biases=0), 6, locked=True)
    )
    ConstrainedCore(core, config.Spectral(delta=delta)).project()
    norms = state_decay(core, steps=200)
    assert norms.shape == (200,)
    assert decay_rate(norms) <= 1 - delta / 4 + 1e-3
    assert norms[-1] < 1e-3 * norms[0]


@pytest.mark.parametrize("kick", [1e-3, 1e-2])
def test_the_kick_is_the_deviation_of_each_input(kick):
    """Through the identity the first norm is kick sqrt(2) G(7 / 2) / G(3), the mean of a chi of six degrees."""
    core = build_core(config.Stack(sizes=(6,), cell=config.Elman(), biases=0), 6, locked=True).double()
    with torch.no_grad():
        core.layers[0].weight_ih.copy_(torch.eye(6))
        core.layers[0].weight_hh.copy_(0.5 * torch.eye(6))
    norms = state_decay(core, trials=20_000, steps=3, kick=kick)
    expected = kick * math.sqrt(2) * math.gamma(3.5) / math.gamma(3)
    assert norms.tolist() == pytest.approx([expected, expected / 2, expected / 4], rel=0.01)


def test_the_rate_of_a_geometric_decay():
    assert decay_rate(0.9 ** torch.arange(50, dtype=torch.float64)) == pytest.approx(0.9)
    assert decay_rate(torch.ones(10)) == pytest.approx(1.0)
    assert math.isnan(decay_rate(torch.zeros(5)))
    fast, slow = 0.5 ** torch.arange(10, dtype=torch.float64), 0.9 ** torch.arange(1, 11, dtype=torch.float64)
    assert decay_rate(torch.cat([fast, fast[-1] * slow])) == pytest.approx(0.9), "the last half, not the first"


@pytest.mark.slow
def test_dynamics_of_two_runs(runs, capsys, tmp_path):
    assert main(["analyze", "dynamics", *map(str, runs), "--out", str(tmp_path / "d.html"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [run["run"] for run in found["runs"]] == ["constrained", "clipped"]
    for run in found["runs"]:
        assert run["success"] is True
        assert len(run["norms"]) == 100
        assert run["largest_radius"] > 0.5
    assert found["runs"][0]["largest_radius"] < 1
    page = (tmp_path / "d.html").read_text()
    assert page.count("<svg") == 4
    assert "2 of 2 finished runs succeeded" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")


@pytest.mark.slow
def test_the_page_lies_in_the_run(runs, capsys):
    assert main(["analyze", "dynamics", str(runs[0]), "--trials", "3", "--steps", "10"]) == 0
    assert (runs[0] / "dynamics.html").is_file()
    assert "succeeded" in capsys.readouterr().out


@pytest.mark.slow
def test_success_is_measured_against_the_untrained_model(runs):
    for run in runs:
        (event,) = [event for event in folder.read_folder(run).metrics.events if event.event == "untrained"]
        assert event.nll == pytest.approx(UNTRAINED[run.name], rel=1e-6)
    written = folder.read_folder(runs[0])
    assert dynamics.succeeded(written, 2, 9.9)[0] is True
    assert dynamics.succeeded(written, 3, 9.9)[0] is None
    waiting = dynamics.dataclasses.replace(written, recipe_table={"training": {"patience": 1}})
    assert dynamics.succeeded(waiting, 3, 9.9)[0] is None  # the last validation was the best
    *before, last = written.metrics.valid
    worse = (*before, msgspec.structs.replace(last, best=False))
    ended = dynamics.dataclasses.replace(waiting, metrics=dynamics.dataclasses.replace(written.metrics, valid=worse))
    assert dynamics.succeeded(ended, 3, 9.9)[0] is True
    early = [event for event in written.metrics.events if event.event != "untrained"]
    metrics = dynamics.dataclasses.replace(written.metrics, events=tuple(early))
    failed, why = dynamics.succeeded(dynamics.dataclasses.replace(written, metrics=metrics), 2, 0.1)
    assert failed is False
    assert why.startswith("failed")


@pytest.mark.slow
def test_stability_of_a_run(runs, capsys):
    assert main(["analyze", "stability", str(runs[0]), "--json", "--streams", "2"]) == 0
    found = json.loads(capsys.readouterr().out)["certificates"]
    assert [(line["tier"], line["layer"]) for line in found] == [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2), (3, 0)]
    assert all(line["holds"] for line in found if line["tier"] == 0)
    assert main(["analyze", "stability", str(runs[0]), "--steps", "0"]) == 0
    said = capsys.readouterr().out
    assert "not proved" in said
    assert "tier 3" not in said


@pytest.mark.slow
def test_too_short_a_text_is_said(runs, capsys):
    assert main(["analyze", "stability", str(runs[0]), "--streams", "50"]) == 2
    assert "tier 3 has" in capsys.readouterr().err
    assert main(["analyze", "dynamics", str(runs[0] / "nothing")]) == 2
    assert "not a run folder" in capsys.readouterr().err


@pytest.mark.parametrize("norms", [(math.nan, 3.0, 1.0), (1.0, math.nan, 3.0)])
def test_a_step_without_a_norm_does_not_hide_the_largest(norms):
    lines = tuple(
        Train(step=n, epoch=0.0, loss=1.0, perplexity=2.7, seconds=0.0, grad_norm=g) for n, g in enumerate(norms)
    )
    found = dynamics.Dynamics("run", [], math.nan, lines, None, "")
    assert found.largest_norm == 3.0


def test_the_plot_of_radii_has_the_border_of_stability_and_shares_of_the_largest_norm():
    lines = tuple(SimpleNamespace(step=step, spectral_radius=0.1 * step, grad_norm=2.0 * step) for step in (1, 2, 4))
    plot = dynamics._radius(3, dynamics.Dynamics("a", [], 1.0, lines, None, ""))
    assert [(level.at, level.label) for level in plot.levels] == [(1.0, "stable below")]
    assert (plot.curves[0].y, plot.curves[1].y) == ([0.1, 0.2, 0.4], [0.25, 0.5, 1.0])
