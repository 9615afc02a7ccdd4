"""Constraints in training: on the right blocks, after each step, saved with the run."""

import json
import math

import msgspec
import pytest
import torch

from elman import config
from elman.config.toml import parse_recipe
from elman.errors import UserError
from elman.learning import checkpoint
from elman.learning.averaging import Average, equal, exponential, polynomial
from elman.learning.constraint import ConstrainedCore, build_constraint, recurrent_spectrum
from elman.learning.projections.subspace import BySubspace
from elman.learning.trainer import StopReason
from elman.network.build import build_model
from elman.network.cores.core import build_core
from elman.network.cores.stack import candidate_hidden, candidate_input, linearised
from elman.tasks.experiment import Experiment
from elman.tasks.text.run import TextRun
from support import networks, text_runs
from support.interruption import StopAt, interrupt
from support.singular_values import sigma_1

CELLS = {
    "gru-before": config.GRU(reset="before"),
    "gru-after": config.GRU(),
    "lstm": config.LSTM(),
    "lstm-1997": config.LSTM(forget_gate=False),
}
KINDS = {
    "subspace": {"kind": "spectral", "delta": 1.2, "input": True},
    "truncated": {"kind": "spectral", "delta": 1.2, "method": "truncated", "compare_norms": True},
    "svd": {"kind": "spectral", "delta": 1.2, "method": "svd"},
    "orthogonal": {"kind": "orthogonal"},
    "spectral-norm": {"kind": "spectral-norm", "bound": 0.9},
}
SPECTRAL = config.Spectral(delta=0.9)
BOUNDS = {"subspace": 0.8, "truncated": 2.0, "svd": 0.8, "orthogonal": 1.0, "spectral-norm": 0.95}


def recipe(kind, cell="gru-before", **training):
    made = text_runs.recipe(constraint=KINDS[kind], optimiser={"kind": "sgd", "lr": 2.0}, **training)
    raw = json.loads(json.dumps(msgspec.to_builtins(made, str_keys=True)))
    raw["model"]["core"]["cell"] = msgspec.to_builtins(CELLS[cell])
    return parse_recipe(raw, "toy")


def trained(made, out, corpus):
    experiment = Experiment(made, out, data=corpus)
    assert experiment.train() is StopReason.FINISHED
    return experiment


def lines(out, kind):
    records = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return [record for record in records if record["kind"] == kind]


@pytest.mark.parametrize("name", CELLS)
def test_only_the_candidate_changes(name):
    torch.manual_seed(0)
    core = build_core(config.Stack(sizes=(6, 5), cell=CELLS[name]), 4, locked=True)
    networks.randomise(core, 1.5)
    before = [parameter.clone() for parameter in core.parameters()]
    constrained = ConstrainedCore(core, config.Spectral(delta=0.9, input=True))
    constrained.project()
    place = 1 if name == "lstm-1997" else 2
    for (key, parameter), old in zip(core.named_parameters(), before, strict=True):
        size = 6 if key.startswith("layers.0") else 5
        for index, (new, was) in enumerate(zip(parameter.split(size), old.split(size), strict=True)):
            changed = index == place and ("weight_hh" in key or "weight_ih" in key)
            assert torch.equal(new, was) is not changed, (key, index)
            if changed:
                assert sigma_1(new) == pytest.approx(1.1 if "weight_hh" in key else 2.0, rel=1e-4)


def test_counts_are_means_of_each_block_since_they_were_asked_for():
    class Counting:
        def __init__(self, *counts):
            self.left = iter(counts)

        def project_(self, block):
            self.computed = next(self.left)

        def counts(self):
            return {"s": self.computed, "s_other": 2 * self.computed}

    constrained = ConstrainedCore(build_core(config.Stack(sizes=(6, 5), cell=config.GRU()), 4, locked=True), SPECTRAL)
    constrained.projectors = [Counting(3, 5, 4), Counting(1, 2, 7)]
    assert constrained.mean_counts() == {}
    constrained.project()
    constrained.project()
    assert constrained.mean_counts() == {"s": [4.0, 1.5], "s_other": [8.0, 3.0]}
    constrained.project()
    assert constrained.mean_counts() == {"s": [4.0, 7.0], "s_other": [8.0, 14.0]}


@pytest.mark.parametrize("name", ["gru-before", "gru-after", "elman-tanh", "elman-sigmoid"])
def test_linearised_is_the_jacobian_of_the_thesis(name):
    """Thesis 3.4: dh_t / dh_{t-1} at 0 without input and biases."""
    torch.manual_seed(0)
    core = build_core(config.Stack(sizes=(4,), cell=networks.CELL_RECORDS[name], biases=0), 3, locked=True)
    (layer,) = networks.randomise(core).layers

    def step(h):
        return layer.cell.step(layer.weights(), h.new_zeros(1, 3), (h.unsqueeze(0),))[0].squeeze(0)

    found = torch.autograd.functional.jacobian(step, torch.zeros(4, dtype=torch.float64))
    with torch.no_grad():
        torch.testing.assert_close(found, linearised(layer))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_holds_after_every_step_and_in_the_saved_model(kind, corpus, tmp_path, monkeypatch):
    made = recipe(kind, epochs=1)
    seen = []
    project = ConstrainedCore.project

    def watched(self):
        project(self)
        seen.append(max(map(sigma_1, self.blocks()[:2])))

    monkeypatch.setattr(ConstrainedCore, "project", watched)
    experiment = trained(made, tmp_path / "run", corpus)
    assert len(seen) == experiment.trainer.progress.step + 1
    assert max(seen) <= BOUNDS[kind] * (1 + 1e-4)
    layers = TextRun(tmp_path / "run").model.core.layers
    assert all(sigma_1(candidate_hidden(layer)) <= BOUNDS[kind] * (1 + 1e-4) for layer in layers)
    if kind == "subspace":
        assert all(sigma_1(candidate_input(layer)) <= 2 + 1e-4 for layer in layers)


@pytest.mark.slow
def test_the_journal_says_what_the_figures_need(corpus, tmp_path):
    trained(recipe("truncated", epochs=1), tmp_path / "run", corpus)
    for record in lines(tmp_path / "run", "train"):
        assert len(record["sigma_1"]) == len(record["s"]) == len(record["s_other"]) == 2
        assert all(0 <= count <= 8 for count in (*record["s"], *record["s_other"]))
        assert 0.5 < record["spectral_radius"] <= 0.5 + max(record["sigma_1"]) / 4 + 1e-5


def test_the_spectrum_can_be_journalled_without_a_constraint(corpus, tmp_path):
    trained(text_runs.recipe(epochs=1, log_spectrum=True), tmp_path / "run", corpus)
    assert all("spectral_radius" in record for record in lines(tmp_path / "run", "train"))


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("size", [1, 8])
def test_the_spectrum_of_weights_that_are_not_finite_is_nan(size, value):
    core = networks.randomise(build_core(config.Stack(sizes=(size,)), 3, locked=True))
    with torch.no_grad():
        candidate_hidden(core.layers[0])[-1, 0] = value
    found = recurrent_spectrum(core)
    assert all(map(math.isnan, (found["spectral_radius"], *found["sigma_1"])))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_run_resumes_bit_for_bit(kind, tmp_path):
    corpus = text_runs.write_corpus(tmp_path / "corpus", {"train": 40, "valid": 8, "test": 8})
    made = recipe(kind, averaging={"kind": "immediate"}, checkpoint_minutes=0.0)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    trained(made, whole, corpus)
    for resume, stop in enumerate((4, 13, None)):
        experiment = Experiment(made, broken, data=corpus, resume=bool(resume))
        try:
            experiment.train([] if stop is None else [StopAt(stop, interrupt)])
        except KeyboardInterrupt:
            assert stop is not None
    for name in ("checkpoint.safetensors", "model.safetensors"):
        one, other = (checkpoint.digest_of(checkpoint.load(out / name)[0]) for out in (whole, broken))
        assert one == other
    clock = ("seconds", "tokens_per_s")
    one, other = (
        [{key: value for key, value in line.items() if key not in clock} for line in lines(out, "train")]
        for out in (whole, broken)
    )
    assert one == other


@pytest.mark.parametrize("share", [equal, exponential(0.8), polynomial(2)])
def test_averages_of_feasible_weights_are_feasible(share):
    """The set is convex."""
    torch.manual_seed(0)
    core = networks.randomise(build_core(config.Stack(sizes=(12,), cell=config.GRU()), 4, locked=True))
    constrained = ConstrainedCore(core, config.Spectral(delta=0.5))
    constrained.project()
    average = Average(list(core.parameters()), share)
    for _ in range(40):
        with torch.no_grad():
            core.layers[0].weight_hh.add_(torch.randn(36, 12))
        constrained.project()
        average.update()
        with average.applied():
            assert sigma_1(candidate_hidden(core.layers[0])) <= 1.5 + 1e-5


def test_takes_tensors_not_modules():
    torch.manual_seed(0)
    tensors = [torch.randn(9, 9), torch.randn(30, 10)[10:20]]
    for tensor, limit in zip(tensors, (1.0, 0.5), strict=True):
        BySubspace(limit).project_(tensor)
    assert [round(sigma_1(tensor), 4) for tensor in tensors] == [1.0, 0.5]


def test_what_does_not_fit_is_said_in_one_line():
    model = build_model(config.Model(encoder=config.Lookup(size=3), core=config.FeedForward(width=2, size=4)), 5)
    training = config.Training(epochs=1, optimiser=config.SGD(lr=1.0), constraint=config.Spectral())
    with pytest.raises(UserError, match=r"training\.constraint needs layers in a chain"):
        build_constraint(training, model.core)
    core = build_core(config.Stack(sizes=(4,), cell=config.Elman()), 3, locked=True)
    with pytest.raises(UserError, match=r"cell elman set training\.constraint\.bound"):
        build_constraint(training, core)
    for cell, name in (
        (config.Highway(), "highway"),
        (config.Ladder(), "rung-forget"),
        (config.Mogrifier(), "mogrifier"),
    ):
        other = build_core(config.Stack(sizes=(4,), cell=cell), 3, locked=True)
        with pytest.raises(UserError, match=rf"training\.constraint .* cell {name}; use elman"):
            build_constraint(training, other)
        assert recurrent_spectrum(other) == {}
    with pytest.raises(UserError, match=r"training\.constraint\.delta"):
        text_runs.recipe(constraint={"kind": "spectral", "delta": 2.0})
    for constraint in ({"kind": "spectral-norm", "bound": 1e39}, {"kind": "orthogonal", "gain": 1e-40}):
        with pytest.raises(UserError, match=r"training\.constraint\..*; write a number of 1e-15 or more and up to 1e"):
            text_runs.recipe(constraint=constraint)
    bounded = config.Training(epochs=1, optimiser=config.SGD(lr=1.0), constraint=config.Spectral(bound=0.9))
    constrained = build_constraint(bounded, networks.randomise(core))
    constrained.project()
    assert sigma_1(core.layers[0].weight_hh) <= 0.9 + 1e-5
