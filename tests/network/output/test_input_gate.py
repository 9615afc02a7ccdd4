"""The input-to-output gate: by value, under every choice, learning rule and cut into windows, and trained alone."""

from itertools import product

import numpy as np
import pytest
import torch

from elman import config
from elman.config.parts import convert
from elman.data.batches import Batch
from elman.errors import UserError
from elman.evaluation.minimal_pairs import sentence_log_probs
from elman.learning.bptt import WholeWindow
from elman.learning.gradient_norm import GradientNorm
from elman.learning.lookback import Lookback
from elman.learning.rtrl import RTRL
from elman.network.build import build_model
from elman.network.output.input_gate import is_of_gate, train_alone
from elman.objective.loss import Objective
from reference import outputs as reference
from support import networks

WORDS, STEPS, ROWS = len(networks.COUNTS), 3, 2
GATES = {
    "logits, own": config.InputGate(size=3),
    "logits": config.InputGate(),
    "level, own": config.InputGate(on="level", size=3),
    "level": config.InputGate(on="level"),
}
every_gate = pytest.mark.parametrize("gate", GATES)


def gated(gate="logits, own", contexts="single", choice=None, activation="softmax", encoder=None, core=None):
    """A model of the words of `COUNTS` with a gate and random weights, float64."""
    recipe = config.Model(
        encoder=encoder or config.Lookup(size=4),
        core=core or config.Stack(sizes=(5, 4)),
        output=config.Output(
            contexts=networks.CONTEXTS[contexts],
            choice=choice or config.Flat(),
            activation=activation,
            gate=GATES[gate] if isinstance(gate, str) else gate,
        ),
    )
    return networks.randomise(build_model(recipe, WORDS, networks.COUNTS))


def symbols(steps=STEPS):
    return torch.randint(WORDS, (steps, ROWS))


@pytest.mark.parametrize(("contexts", "activation"), list(product(("single", "doc"), ("softmax", "sigsoftmax"))))
@every_gate
def test_every_gate_is_the_papers(gate, contexts, activation):
    """Position by position and component by component, in NumPy."""
    model, inputs = gated(gate, contexts, activation=activation), symbols()
    trace, _ = model.trace(inputs, model.begin(ROWS))
    values = {name: parameter.detach().numpy() for name, parameter in model.output.named_parameters()}
    ours = model.output.log_probs(trace).exp().detach().numpy()
    for t, row in np.ndindex(STEPS, ROWS):
        levels = [level[t, row].detach().numpy() for level in trace.levels]
        x = values["contexts.gate.weight"][inputs[t, row]] if gate.endswith("own") else levels[0]
        if gate.startswith("level"):
            W_g, b_g = values["contexts.gate.linear.weight"], values["contexts.gate.linear.bias"]
            levels[-1] = reference.gated(x, W_g, b_g, levels[-1])
        prior, vectors = [1.0], [levels[-1]]
        if contexts == "doc":
            prior, vectors = reference.components(values, networks.CONTEXTS[contexts].heads, levels)
        logits = [values["choice.weight"] @ vector + values["choice.bias"] for vector in vectors]
        if gate.startswith("logits"):
            W_g, b_g = values["choice.gate_weight"], values["choice.gate_bias"]
            logits = [reference.gated(x, W_g, b_g, z) for z in logits]
        expected = sum(pi * reference.distribution(activation, z) for pi, z in zip(prior, logits, strict=True))
        np.testing.assert_allclose(ours[t, row], expected, rtol=1e-9)


@pytest.mark.parametrize("contexts", ["single", "doc"])
@every_gate
def test_the_loss_of_training_is_that_of_evaluation_and_its_gradients_those_of_differences(gate, contexts):
    model, inputs, targets = gated(gate, contexts), symbols(), symbols()
    weight = torch.rand(STEPS, ROWS).double()
    trace, _ = model.trace(inputs, model.begin(ROWS))
    log_prob = model.output.log_prob(trace, targets)
    gathered = model.output.log_probs(trace).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(log_prob, gathered)
    with torch.no_grad():
        torch.testing.assert_close(model.output.log_prob(trace, targets), gathered)
    _, nll = model.output.nll(model.output.contexts(trace), targets, weight)
    torch.testing.assert_close(nll, -gathered)

    def total(*_):
        trace, _ = model.trace(inputs, model.begin(ROWS))
        return model.output.nll(model.output.contexts(trace), targets, weight)[0]

    own = [parameter for name, parameter in model.named_parameters() if is_of_gate(name)]
    assert own
    assert torch.autograd.gradcheck(total, own, fast_mode=True)


def test_a_gate_on_the_level_leaves_the_fused_kernels_as_they_are():
    model, targets = gated("level"), symbols()
    assert model.output.choice.fused
    assert not gated("logits").output.choice.fused
    trace, _ = model.trace(symbols(), model.begin(ROWS))
    found = []
    for fast in (True, False):
        model.output.choice.fast = fast
        total, _ = model.output.nll(model.output.contexts(trace), targets, torch.ones(STEPS, ROWS).double())
        found.append(torch.autograd.grad(total, list(model.parameters()), retain_graph=True, materialize_grads=True))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("choice", networks.CHOICES)
def test_any_choice_follows_a_gated_level(choice):
    model = gated("level", "doc", networks.CHOICES[choice])
    trace, _ = model.trace(symbols(), model.begin(ROWS))
    log_probs = model.output.log_probs(trace)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(STEPS, ROWS).double())
    model.output.contexts.gate = None
    assert not torch.allclose(model.output.log_probs(trace), log_probs)


def test_notes_follow_a_gated_level():
    recipe = config.Model(
        encoder=config.Frames(size=4),
        core=config.Stack(sizes=(5,)),
        output=config.Output(choice=config.NADE(size=3), gate=config.InputGate(on="level")),
    )
    model, frames = networks.randomise(build_model(recipe, 6)), torch.randint(2, (3, 2, 6))
    log_prob, _ = model.log_prob(frames, frames, model.begin(2))
    assert log_prob.isfinite().all()
    drawn, _ = model.sample(frames, model.begin(2), generator=torch.Generator().manual_seed(0))
    assert drawn.shape == frames.shape


@every_gate
def test_windows_may_be_cut_anywhere(gate):
    model, inputs, targets = gated(gate, "doc"), symbols(7), symbols(7)
    whole, end = model.log_prob(inputs, targets, model.begin(ROWS))
    first, state = model.log_prob(inputs[:3], targets[:3], model.begin(ROWS))
    second, last = model.log_prob(inputs[3:], targets[3:], state)
    torch.testing.assert_close(torch.cat([first, second]), whole)
    torch.testing.assert_close(last, end)


@every_gate
def test_sentences_with_common_beginnings_are_scored_as_alone(gate):
    model = gated(gate).eval()
    sentences = [np.array(ids) for ids in ([1, 2, 3], [1, 2, 4], [5], [1, 6, 2, 2])]
    together = sentence_log_probs(model, sentences, 0)
    for ids, found in zip(sentences, together, strict=True):
        read = torch.tensor([0, *ids[:-1]]).unsqueeze(1)
        log_prob, _ = model.log_prob(read, torch.from_numpy(ids).unsqueeze(1), model.begin(1))
        assert found == pytest.approx(log_prob.sum().item())


@pytest.mark.parametrize("rule", [Lookback(7), RTRL(), GradientNorm(WholeWindow(), 1e-12)])
@every_gate
def test_rules_of_single_steps_have_the_gradient_of_the_whole_window(gate, rule):
    model = gated(gate, core=config.Stack(sizes=(4,)))
    batch = Batch(symbols(5), symbols(5))
    found = []
    for learner in (WholeWindow(), rule):
        model.zero_grad()
        learner(model, Objective(), batch, learner.begin(model, ROWS))
        found.append([parameter.grad.clone() for parameter in model.parameters()])
    torch.testing.assert_close(*found, rtol=1e-6, atol=1e-9)


def test_dropout_draws_every_element_of_what_the_gate_reads_and_nothing_in_evaluation():
    model = gated(config.InputGate(size=4000, dropout=0.25))
    gate, inputs = model.output.contexts.gate, torch.zeros(2, 2, dtype=torch.int64)
    trace, _ = model.trace(inputs, model.begin(2))
    torch.testing.assert_close(gate.eval().vectors(trace), gate.weight[inputs])
    drawn = (gate.train().vectors(trace) / gate.weight[0]).detach()
    assert torch.isclose(drawn, torch.tensor(0.0).double()).float().mean().item() == pytest.approx(0.25, abs=0.02)
    assert torch.isclose(drawn, torch.tensor(4 / 3).double()).float().mean().item() == pytest.approx(0.75, abs=0.02)
    assert not torch.equal(drawn[0, 0], drawn[1, 0])


def test_the_gate_alone_is_trained():
    model = gated()
    train_alone(model)
    learnt = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert learnt == {"output.contexts.gate.weight", "output.choice.gate_weight", "output.choice.gate_bias"}


def test_sizes_are_those_of_the_formulas():
    plain = gated(config.InputGate(size=3)).output
    assert plain.contexts.gate.weight.shape == (WORDS, 3)
    assert plain.choice.gate_weight.shape == (WORDS, 3)
    assert plain.choice.multiply_adds(torch.full((WORDS,), 1 / WORDS)) == WORDS * (4 + 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"choice": config.Tree()}, 'gate.on = "logits" multiplies the logits of .*kind = "flat"'),
        ({"encoder": config.Characters()}, "gate.size gives every word a vector"),
        ({"core": config.Jordan(size=4)}, 'kind = "jordan" hears at every step'),
    ],
)
def test_what_does_not_go_together_is_one_line(change, message):
    with pytest.raises(UserError, match=message):
        gated("logits, own", **change)


def test_the_record_is_a_table_of_the_recipe():
    raw = {"gate": {"size": 300, "dropout": 0.5, "alone": True}}
    assert convert(raw, config.Output).gate == config.InputGate(size=300, dropout=0.5, alone=True)
