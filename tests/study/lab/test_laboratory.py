"""The laboratory: networks, trials, chains of spans, errors on their way back."""

import contextlib
import math
from itertools import pairwise

import msgspec
import numpy as np
import pytest
import torch

from elman import config
from elman.data.batches import Batch
from elman.data.classic import TASKS
from elman.errors import UserError
from elman.jobs.launching import Launch
from elman.learning.bptt import WholeWindow
from elman.learning.echo_state import fit_ridge
from elman.learning.optimisers import Optimiser
from elman.learning.update import Update
from elman.network.output.choice import Surroundings
from elman.network.output.gaussian import GaussianChoice
from elman.objective.loss import Objective
from elman.study.lab import page
from elman.study.lab.conduct import LADDER, Chain, chains, conduct, kept_result, reach, summarise, to_builtins
from elman.study.lab.networks import NETWORKS, PENALTY, build_network, learner_of, learning_rule
from elman.study.lab.page import table, verdict, write_laboratory
from elman.study.lab.trial import Trial, TrialResult, error_flow, error_of, train_trial
from support import inline

RECALL = TASKS["recall"]


def outcome(trial, solved, flow=(1.0, 0.5, 0.25)):
    curve = [(0, 0.5), (25, 0.001 if solved else 0.4)]
    return TrialResult(
        trial=trial, solved=solved, error=curve[-1][1], steps=25, seconds=1.0, parameters=10, curve=curve,
        flow_before=list(flow), flow_after=list(flow),
    )  # fmt: skip


def keep(folder, *outcomes):
    (folder / "trials").mkdir(parents=True, exist_ok=True)
    for one in outcomes:
        (folder / "trials" / f"{one.trial.name}.json").write_bytes(msgspec.json.encode(one))


@pytest.mark.parametrize("cell", NETWORKS)
def test_every_network_reads_every_kind(cell):
    for name in ("adding", "recall", "copy"):
        if cell == "jordan" and name != "recall":
            has = "bits" if name == "copy" else "real values"
            with pytest.raises(
                UserError, match=f"the cell jordan reads its own symbols, but the task {name} has {has}"
            ):
                build_network(TASKS[name], cell, 4)
            continue
        model = build_network(TASKS[name], cell, 4)
        error = error_of(model, TASKS[name], TASKS[name].draw(np.random.default_rng(0), 5, 8))
        assert 0 <= error < math.inf


@pytest.mark.parametrize("cell", [name for name in NETWORKS if name not in ("jordan", "echo-state")])
def test_every_network_learns_values_by_every_rule(cell):
    """Of a QRNN, whose state has the input before, and so a part that no weight made, as of the others."""
    task = TASKS["adding"]
    batch = task.draw(np.random.default_rng(0), 2, 3).batch
    for rule in ("bptt", "bptt-2", "bptt@0.9", "bptt+0.1"):
        model = build_network(task, cell, 4)
        learner = learner_of(model, rule)
        learner(model, Objective(), batch, learner.begin(model, 2))
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        assert gradients
        assert all(gradient.isfinite().all() for gradient in gradients)
    flow = error_flow(model, batch)
    assert len(flow) == 4
    assert all(map(math.isfinite, flow))


def test_a_trial_whose_error_is_not_finite_is_kept(tmp_path):
    """JSON has null for it; the median over seeds counts it as infinite."""
    trials = [Trial(task="adding", cell="elman", span=8, seed=seed) for seed in range(3)]
    diverged = msgspec.structs.replace(
        outcome(trials[0], solved=False), error=math.nan, curve=[(0, 1.0), (25, math.nan)], flow_after=[math.nan] * 3
    )
    keep(tmp_path, diverged, *(outcome(trial, solved=False) for trial in trials[1:]))
    found = {Chain(trial, 8): [kept_result(tmp_path, trial).find()] for trial in trials}
    (kept, *_) = found.values()
    assert (kept[0].trial, kept[0].steps) == (trials[0], 25)
    assert math.isnan(kept[0].error)
    (row,) = summarise(found)
    assert row.error == 0.4


def test_errors_back_in_time_stand_where_they_are(tmp_path, monkeypatch):
    """One that is not finite leaves a gap, and those behind it are no nearer."""
    drawn = []
    monkeypatch.setattr(page, "svg", lambda figure, *_: drawn.append(figure.axes[0]) or "")
    trial = Trial(task="adding", cell="elman", span=8)
    found = {Chain(trial, 8): [outcome(trial, solved=False, flow=(1.0, math.inf, 0.25))]}
    write_laboratory(tmp_path / "p.html", found, title="t")
    lines = [line for axes in drawn for line in axes.lines if axes.get_xlabel().startswith("steps back")]
    assert [line.get_xydata().tolist() for line in lines] == [[[0.0, 1.0], [2.0, 0.25]]] * 2


@pytest.mark.slow
def test_a_trial_learns():
    found, _ = train_trial(Trial(task="recall", cell="gru", span=2, size=16, budget=20.0, lr=0.01))
    assert found.solved
    assert found.error < RECALL.solved <= found.curve[0][1]
    assert found.curve[-1] == (found.steps, found.error)
    assert len(found.flow_before) == len(found.flow_after) == 5
    again, _ = train_trial(found.trial)
    assert (again.steps, again.error) == (found.steps, found.error)


def test_the_error_of_values_and_of_symbols():
    adding, draw = TASKS["adding"], np.random.default_rng(0)
    model, sample = build_network(adding, "elman", 4), adding.draw(draw, 50, 6)
    with torch.no_grad():
        model.output.choice.readout.weight.zero_()
        model.output.choice.readout.bias.fill_(1.0)
    wanted = (sample.batch.targets[-1] - 1).square().mean().item()
    assert error_of(model, adding, sample) == pytest.approx(wanted)
    model, sample = build_network(RECALL, "elman", 4), RECALL.draw(draw, 50, 6)
    log_probs, _ = model.log_probs(sample.batch.inputs, model.begin(50))
    wrong = (log_probs[-1].argmax(-1) != sample.batch.inputs[0]).float().mean().item()
    assert error_of(model, RECALL, sample) == pytest.approx(wrong)


def test_the_error_of_bits():
    """Of an output that is always 1 it is the share of zeros among the bits that are due."""
    task = TASKS["copy"]
    model, sample = build_network(task, "lstm", 4), task.draw(np.random.default_rng(0), 50, 6)
    with torch.no_grad():
        model.output.choice.weight.zero_()
        model.output.choice.bias.fill_(1.0)
    zeros = 1 - sample.batch.targets[sample.batch.mask].mean().item()
    assert error_of(model, task, sample) == pytest.approx(zeros)


@pytest.mark.parametrize("name", ["copy", "repeat-copy", "associative-recall", "priority-sort"])
def test_tasks_of_bits_are_trained(name):
    """The loss of a small network falls on one sample."""
    task = TASKS[name]
    torch.manual_seed(0)
    model, batch = build_network(task, "gru", 16), task.measured(np.random.default_rng(0), 4, task.span).batch
    update = Update(model, WholeWindow(), Objective(), Optimiser(config.Adam(lr=0.01), list(model.parameters())))
    losses = []
    for _ in range(60):
        update.state = None
        losses.append(update(batch, 0.01).objective.item())
    assert losses[-1] < 0.8 * losses[0]


def test_a_gaussian_of_unit_variance_is_the_normal_distribution():
    choice = GaussianChoice(config.Gaussian(variance="unit"), Surroundings(4, 3)).double()
    context, target = torch.randn(5, 2, 4, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    normal = torch.distributions.Normal(choice.mean(context), 1.0)
    torch.testing.assert_close(choice.log_prob(context, target), normal.log_prob(target.unsqueeze(1)).sum(-1))


def test_errors_on_their_way_back():
    """Against the product of Jacobians, for Elman's network; its norm falls as sigma_1 of W says."""
    model = build_network(RECALL, "elman", 8)
    with torch.no_grad():
        model.core.layers[0].weight_hh.mul_(0.5)
    batch = RECALL.draw(np.random.default_rng(0), 6, 4).batch
    flow = error_flow(model, batch)
    trace, _ = model.trace(batch.inputs, model.begin(6))
    log_probs = model.output.log_probs(trace._replace(levels=tuple(level[-1:] for level in trace.levels)))
    error = torch.autograd.grad(-log_probs[0].gather(-1, batch.targets[-1:].t()).sum(), trace.top, retain_graph=True)[
        0
    ][-1]
    for k, top in enumerate(reversed(trace.top.unbind())):
        assert flow[k] == pytest.approx(error.norm(dim=1).mean().item(), rel=1e-4)
        error = (error * (1 - top.square())) @ model.core.layers[0].weight_hh
    assert all(after <= 0.5 * before for before, after in pairwise(flow))
    assert len(error_flow(model, batch, farthest=3)) == 4
    assert error_flow(model, batch, farthest=3) == pytest.approx(flow[:4])


def test_spans_double_until_one_is_not_learnt(tmp_path):
    first = Trial(task="recall", cell="lstm", span=8)
    spans = [msgspec.structs.replace(first, span=span) for span in (8, 16, 32)]
    keep(tmp_path, outcome(spans[0], True), outcome(spans[1], True), outcome(spans[2], False))
    chain, short = Chain(first, 1024), Chain(first, 16)
    told = []
    found = conduct([chain, short], tmp_path, Launch(), told.append)
    assert [one.trial.span for one in found[chain]] == [8, 16, 32]
    assert [one.trial.span for one in found[short]] == [8, 16]
    assert reach(found[chain]) == 16
    assert told == []
    assert chain.after([outcome(msgspec.structs.replace(first, budget=1.0), False)]) is None


def test_trials_of_other_settings_have_names_of_their_own():
    trial = Trial(task="recall", cell="gru", span=2)
    others = [
        msgspec.structs.replace(trial, **one) for one in ({"size": 16}, {"budget": 20.0}, {"lr": 0.01, "clip": 0.5})
    ]
    assert trial.name == "recall-gru-bptt-span-2-seed-0"
    assert [one.name.removeprefix(trial.name) for one in others] == ["-size-16", "-budget-20", "-lr-0.01-clip-0.5"]


def test_trials_are_run_once_and_kept(tmp_path, monkeypatch):
    """Two chains with the same first trial: one job; what is kept is not run again, what fails is reported."""
    launcher = inline.use(monkeypatch)
    first = Trial(task="recall", cell="gru", span=2, size=16, budget=20.0, lr=0.01)
    told = []
    found = conduct([Chain(first, 2), Chain(first, 3)], tmp_path, Launch(), told.append)
    assert launcher.names == [first.name]
    assert [[one.trial for one in results] for results in found.values()] == [[first], [first]]
    assert told == [f"{first.name}: learnt, error {found[Chain(first, 2)][0].error:.3g}, "
                    f"{found[Chain(first, 2)][0].seconds:.0f} s"]  # fmt: skip
    conduct([Chain(first, 2)], tmp_path, Launch(), told.append)
    assert len(launcher.names) == 1
    wrong = msgspec.structs.replace(first, rule="hebb")
    with pytest.raises(UserError, match=r"recall-gru-hebb-span-2-seed-0-size-16-.*: there is no rule hebb"):
        conduct([Chain(wrong, 2)], tmp_path, Launch(retries=1), told.append)
    assert told[-1].startswith(f"{wrong.name}: failed (there is no rule hebb")


@pytest.mark.slow
def test_a_comparison_as_table_and_page(tmp_path):
    results = {}
    for cell, learnt in (("elman", (False, False)), ("lstm", (True, True))):
        for seed, solved in enumerate(learnt):
            trial = Trial(task="adding", cell=cell, span=16, seed=seed)
            results[Chain(trial, 16)] = [outcome(trial, solved, () if cell == "elman" else (1.0, 0.5))]
    rows = summarise(results)
    assert [(row.cell, row.spans, row.median, row.steps) for row in rows] == [
        ("elman", [0, 0], 0, None),
        ("lstm", [16, 16], 16, 25),
    ]
    assert table(rows)[1][0][:5] == ["adding", "elman", "bptt", "none", "none, none"]
    assert verdict(rows) == "adding: lstm to span 16 (median over seeds)."
    assert len(to_builtins(results)["trials"]) == 4
    page = write_laboratory(tmp_path / "page.html", results, title="A comparison")
    assert page.read_text().count("<svg") == 4


def test_names_that_do_not_exist():
    for find, name, message in (
        (learning_rule, "bptt-0", "there is no rule bptt-0; choose bptt, bptt-H"),
        (learning_rule, "bptt+0", "there is no rule"),
        (lambda name: build_network(RECALL, name, 4), "perceptron", "there is no cell perceptron; `elman lab cells`"),
    ):
        with pytest.raises(UserError, match=message.replace("+", r"\+")):
            find(name)
    assert learning_rule("bptt-7").steps == 7
    assert learning_rule("bptt+0.5").weight == 0.5


def test_the_lesson_climbs_to_the_lstm():
    assert [rung.cell for rung in LADDER] == ["elman", "rung-forget", "rung-input", "rung-output"]
    assert {chain.first.cell for chain in chains(1, 1.0, 32)} <= set(NETWORKS)


@pytest.mark.slow
def test_the_lesson_shows_what_it_says():
    """Elman's network has learnt nothing of recall when every network with a forget gate has learnt all of it."""
    found = {}
    for rung in LADDER:
        (first,) = (one.first for one in chains(2, 60.0, 64)
                    if (one.first.cell, one.first.task, one.first.seed) == (rung.cell, "recall", 0))  # fmt: skip
        errors = found.setdefault(rung.cell, [])

        def tell(step, error, errors=errors):
            errors.append(error)
            if step == 250:
                raise StopIteration

        with contextlib.suppress(StopIteration):
            train_trial(first, tell)
    elman, *gated = (errors[-1] for errors in found.values())
    assert max(gated) < 0.01
    assert elman > 0.5, "guessing has 0.75"


def test_an_echo_state_network_reads_values_by_ridge_regression():
    """Streamed over windows it is the closed form over all of them, and nothing else changes."""
    task, draw = TASKS["mackey-glass"], np.random.default_rng(0)
    model = build_network(task, "echo-state", 30).double()
    learner, drawn = learner_of(model, "bptt"), model.core.weight_hh.clone()
    states, targets = [], []
    for _ in range(3):
        inputs, wanted, mask, *_ = task.draw(draw, 4, 6).batch
        batch = Batch(inputs.double(), wanted.double(), mask)
        learner(model, Objective(), batch, learner.begin(model, 4))
        heard, _ = model.core.run(batch.inputs, model.core.begin(4))
        states.append(torch.cat([heard, torch.ones_like(heard[..., :1])], dim=-1)[mask])
        targets.append(batch.targets[mask])
    weights = fit_ridge(torch.cat(states), torch.cat(targets), PENALTY)
    readout = model.output.choice.readout
    found = torch.cat([readout.weight, readout.bias[:, None]], dim=1).t()
    torch.testing.assert_close(torch.cat(states) @ found, torch.cat(states) @ weights, rtol=1e-5, atol=1e-6)
    assert torch.equal(model.core.weight_hh, drawn)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert isinstance(learner_of(build_network(RECALL, "echo-state", 30), "bptt"), WholeWindow)
    assert isinstance(learner_of(build_network(task, "lstm", 4), "bptt"), WholeWindow)


@pytest.mark.slow
def test_spans_that_are_not_learnt_are_not_drawn_as_spans(tmp_path, drawn):
    trial = Trial(task="mackey-glass", cell="elman", span=1)
    learnt = msgspec.structs.replace(trial, cell="lstm")
    results = {Chain(trial, 4): [outcome(trial, False)], Chain(learnt, 4): [outcome(learnt, True)]}
    page = write_laboratory(tmp_path / "page.html", results, title="A comparison").read_text()
    assert ">none</text>" in page
    assert "Longest span learnt by elman: none, lstm: 1." in page
