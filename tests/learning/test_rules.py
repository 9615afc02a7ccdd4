"""Learning rules against each other, in float64: every gradient is found in at least two ways."""

import math

import pytest
import torch

from elman import config
from elman.data.batches import Batch
from elman.errors import UserError
from elman.learning import rtrl
from elman.learning.bptt import WholeWindow
from elman.learning.forcing import forcing_probability, listen_to_itself
from elman.learning.gradient_norm import GradientNorm, errors_back, preservation
from elman.learning.lookback import Lookback
from elman.learning.rtrl import RTRL, cost
from elman.learning.single_step import OneStep
from elman.learning.update import build_learner
from elman.network.build import build_model
from elman.network.encoders.encoder import build_encoder
from elman.network.fast import policy
from elman.network.fast.precision import products_in
from elman.network.model import LanguageModel
from elman.network.output.contexts import build_contexts
from elman.network.output.flat import FlatChoice
from elman.network.output.layer import OutputLayer
from elman.network.state import detach, leaves
from elman.objective.loss import Objective
from elman.objective.penalties import Activation
from support.networks import CELLS, CORES, randomise, stack

WORDS, STEPS, ROWS = 5, 6, 3


def model_of(core):
    """A language model of few words around a core that reads vectors of 3."""
    flat = FlatChoice(torch.nn.Parameter(torch.empty(WORDS, core.dims[-1])), "softmax")
    encoder = build_encoder(config.Lookup(size=3), WORDS, locked=True)
    return randomise(LanguageModel(encoder, core, OutputLayer(build_contexts(config.Output(), core.dims), flat)), 0.6)


def window(steps=STEPS):
    tokens = torch.randint(WORDS, (steps + 1, ROWS))
    return Batch(tokens[:-1], tokens[1:])


def gradients(learner, model, *batches, objective=None):
    """The gradients of one or more windows in a row, added up, each weighed by its length."""
    model.zero_grad()
    state = learner.begin(model, ROWS)
    for batch in batches:
        _, state = learner(model, objective or Objective(reduction="sum"), batch, state)
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters()]


def distance(found, wanted):
    whole = math.sqrt(sum(g.square().sum().item() for g in wanted))
    return math.sqrt(sum((a - b).square().sum().item() for a, b in zip(found, wanted, strict=True))) / whole


@pytest.mark.slow
@pytest.mark.parametrize("name", CORES)
def test_rtrl_is_bptt(name):
    model, batch = model_of(CORES[name]()), window()
    wanted = gradients(WholeWindow(), model, batch)
    assert distance(gradients(RTRL(), model, batch), wanted) < 1e-10


def test_jordans_network_listens_to_an_output_layer_that_learns():
    recipe = config.Model(encoder=config.Lookup(size=3), core=config.Jordan(size=4, decay=0.3))
    model, batch = randomise(build_model(recipe, WORDS)), window()
    wanted = gradients(WholeWindow(), model, batch)
    assert distance(gradients(RTRL(), model, batch), wanted) < 1e-10
    assert distance(gradients(Lookback(STEPS), model, batch), wanted) < 1e-10


@pytest.mark.parametrize("together", [1, 400, 10**6])
def test_rtrl_finds_the_parts_of_single_steps_together_or_one_by_one(together, monkeypatch):
    monkeypatch.setattr(rtrl, "TOGETHER", together)
    model, batch = model_of(stack("lstm", sizes=(4,))), window(7)
    assert distance(gradients(RTRL(), model, batch), gradients(WholeWindow(), model, batch)) < 1e-10


@pytest.mark.parametrize("name", ["reservoir", "window-1"])
def test_rules_agree_where_no_error_passes_the_core(name):
    model, batch = model_of(CORES[name]()), window()
    wanted = gradients(WholeWindow(), model, batch)
    for rule in (RTRL(), Lookback(1), Lookback(3)):
        assert distance(gradients(rule, model, batch), wanted) < 1e-10
    assert cost(model, 9).bytes == 0


CONSTANT = [name for name in CORES if name.startswith(("reservoir", "window", "jordan-target"))]
"""Cores whose state is no function of the one before by trained weights."""


@pytest.mark.parametrize("name", CORES)
def test_the_regulariser_needs_recurrent_weights_that_learn(name):
    model, batch, learner = model_of(CORES[name]()), window(), GradientNorm(WholeWindow(), 0.1)
    if name in CONSTANT:
        with pytest.raises(UserError, match=r"training\.penalties\.gradient_norm .* none"):
            learner.check(model, ROWS)
        return
    learner.check(model, ROWS)
    assert distance(gradients(learner, model, batch), gradients(WholeWindow(), model, batch)) > 0


def test_rtrl_goes_on_over_windows_where_bptt_is_cut():
    model, batch = model_of(stack("lstm")), window(6)
    parts = [Batch(batch.inputs[a:b], batch.targets[a:b]) for a, b in ((0, 1), (1, 4), (4, 6))]
    wanted = gradients(WholeWindow(), model, batch)
    assert distance(gradients(RTRL(), model, *parts), wanted) < 1e-10
    assert distance(gradients(WholeWindow(), model, *parts), wanted) > 1e-3


@pytest.mark.parametrize("rule", [RTRL(), Lookback(STEPS)])
def test_the_loss_and_its_penalties_are_those_of_the_window(rule):
    model, batch, objective = model_of(stack("gru-after")), window(), Objective([Activation(weight=0.3)])
    ours, _ = rule(model, objective, batch, rule.begin(model, ROWS))
    wanted, _ = objective(model, batch, model.begin(ROWS))
    assert all(torch.allclose(a, b.detach()) for a, b in zip(ours, wanted, strict=True))
    found = gradients(rule, model, batch, objective=objective)
    assert distance(found, gradients(WholeWindow(), model, batch, objective=objective)) < 1e-10
    assert not any(leaf.requires_grad for leaf in leaves(rule.begin(model, ROWS)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["elman-tanh", "lstm", "gru-before", "window-3", "qrnn-2", "rg-lru"])
@pytest.mark.parametrize("steps", [1, 2, 4, STEPS, STEPS + 3])
def test_a_look_back_of_h_steps(name, steps):
    """Against the definition: the loss of each step alone, its state cut h steps before.

    The states of the last two have parts without a gradient: the input before, and a mark of the first step.
    """
    model, batch = model_of(CORES[name]() if name in CORES else stack(name)), window()
    model.zero_grad()
    objective, state, states = Objective(reduction="sum"), model.begin(ROWS), []
    for symbols in batch.inputs:
        states.append(state)
        _, state = model.trace(symbols[None], state)
    for t in range(STEPS):
        start = max(0, t + 1 - steps)
        trace, _ = model.trace(batch.inputs[start : t + 1], detach(states[start]))
        last = trace._replace(levels=tuple(level[-1:] for level in trace.levels))
        objective.of_trace(model, last, Batch(batch.inputs[t : t + 1], batch.targets[t : t + 1])).objective.backward()
    wanted = [p.grad.clone() for p in model.parameters()]
    assert distance(gradients(Lookback(steps), model, batch), wanted) < 1e-12
    if steps >= STEPS:
        assert distance(wanted, gradients(WholeWindow(), model, batch)) < 1e-12


@pytest.mark.parametrize("name", ["elman-tanh", "lstm", "gru-after", "qrnn-2"])
def test_pascanu_regulariser_by_its_definition(name):
    """Omega by explicit Jacobians, and its immediate gradient by differences."""
    model, batch, weight = model_of(stack(name, sizes=(3,))), window(4), 0.7
    step = OneStep(model)
    states, errors = errors_back(model, step, Objective(reduction="sum"), batch, model.begin(ROWS))
    omega = preservation(step, batch.inputs, states[:-1], errors[1:])

    def by_definition():
        total = 0.0
        for t, row in ((t, row) for t in range(4) for row in range(ROWS)):
            one = tuple(leaf[row : row + 1] for leaf in states[t][0])

            def after(*leaves, t=t, row=row):
                return torch.cat(step(batch.inputs[t, row : row + 1], (leaves,))[1][0], dim=1)

            jacobian = torch.cat(torch.autograd.functional.jacobian(after, one), dim=-1)[0].flatten(1)
            error = torch.cat([leaf[row] for leaf in errors[t + 1][0]])
            total += ((error @ jacobian).norm() / error.norm() - 1).square()
        return total / ROWS

    assert torch.allclose(omega, by_definition(), rtol=1e-10)
    plain, learner = gradients(WholeWindow(), model, batch), GradientNorm(WholeWindow(), weight)
    found = [a - b for a, b in zip(gradients(learner, model, batch), plain, strict=True)]
    layer, position, tiny = model.core.layers[0], (1, 2), 1e-6
    matrix = layer.weight_ih if layer.weight_hh is None else layer.weight_hh
    index = next(i for i, p in enumerate(model.parameters()) if p is matrix)
    values = []
    for sign in (1, -1):
        with torch.no_grad():
            matrix[position] += sign * tiny
            values.append(by_definition())
            matrix[position] -= sign * tiny
    slope = weight * (values[0] - values[1]) / (2 * tiny)
    assert torch.allclose(found[index][position], slope, rtol=1e-5)


@pytest.mark.parametrize("core", ["residual", "jordan"])
@pytest.mark.parametrize("chosen", ["float32", "bf16"])
def test_the_regulariser_of_large_products(core, chosen, monkeypatch):
    """Its gradient is differentiated, which products by oneDNN or in bf16 are not; it is that of small products."""
    kinds = {"residual": config.Residual(size=4), "jordan": config.Jordan(size=4)}
    output = config.Output(contexts=config.Mixture(heads={1: 2}, size=3))
    model = build_model(config.Model(encoder=config.Lookup(size=4), core=kinds[core], output=output), WORDS)
    learner, batch = GradientNorm(WholeWindow(), 0.5), window()
    wanted = gradients(learner, model, batch)
    for limit in ("LEAST_ONEDNN", "LEAST_MULTIPLY_ADDS", "LEAST_ROWS"):
        monkeypatch.setattr(policy, limit, 1)
    with products_in(chosen):
        learner.check(model, ROWS)
        found = gradients(learner, model, batch)
    assert distance(found, wanted) < (0.1 if chosen == "bf16" else 1e-4)


def test_gradients_are_added_without_a_warning(recwarn):
    """Those of convolutions come in columns."""
    learner = GradientNorm(WholeWindow(), 0.5)
    gradients(learner, model_of(stack("mlstm-convolution")), window())
    assert not recwarn.list


def test_costs_of_rtrl_and_a_network_too_big_for_it():
    model = model_of(stack("elman-tanh", sizes=(4,)))
    weights = 4 * 3 + 4 * 4 + 8 + WORDS * 3
    assert cost(model, 2) == (3 * 2 * 4 * weights * 8, 2 * 4 * 4 * weights)
    with pytest.raises(UserError, match=r"rtrl\" would need .* GB .* training\.rule\.max_gb; make the network smaller"):
        RTRL(max_gb=1e-6).check(model, 2)


def learner_of(core=None, output=None, **training):
    recipe = config.Training(epochs=1, optimiser=config.SGD(lr=1.0), **training)
    core = core or config.Stack(sizes=(4,))
    model = config.Model(encoder=config.Lookup(size=4), core=core, output=output or config.Output())
    return build_learner(recipe, model)


def test_recipes_build_their_learning_rules():
    assert isinstance(learner_of(), WholeWindow)
    assert learner_of(rule=config.BPTT(steps=3)).steps == 3
    assert isinstance(learner_of(rule=config.RTRL()), RTRL)
    assert isinstance(learner_of(penalties=config.Penalties(gradient_norm=0.1)).rule, WholeWindow)
    with pytest.raises(UserError, match=r"step by step, which model\.core\.weight_drop does not"):
        learner_of(config.Stack(sizes=(4,), weight_drop=0.5), rule=config.RTRL())
    output = config.Output(contexts=config.Mixture(heads={1: 2}, size=4, dropout=0.5))
    assert isinstance(learner_of(output=output, rule=config.RTRL()), RTRL)
    with pytest.raises(UserError, match=r"step by step, which model\.output\.contexts\.dropout does not"):
        learner_of(config.Jordan(size=4), output, rule=config.RTRL())


def test_forcing_probabilities_follow_their_schedules():
    def at(schedule, epoch, scale, floor=0.0):
        return forcing_probability(config.Forcing(schedule=schedule, scale=scale, floor=floor), epoch)

    assert [at("linear", epoch, 0.25, 0.3) for epoch in (0, 1, 2, 9)] == [1, 0.75, 0.5, 0.3]
    assert at("exponential", 3, 0.5) == 0.125
    assert at("sigmoid", 2.0, 2.0) == pytest.approx(2 / (2 + math.e))
    assert [at("constant", 7, scale) for scale in (0.0, 0.5, 3.0)] == [0, 0.5, 1]


def test_without_a_teacher_the_model_reads_what_it_said():
    model, batch = model_of(stack("gru-after")), window(8)
    assert listen_to_itself(model, batch, model.begin(ROWS), 1.0) is batch
    with torch.no_grad():
        model.output.choice.weight.mul_(200)  # so sure of itself that drawing is choosing
    own = listen_to_itself(model, batch, model.begin(ROWS), 0.0)
    log_probs, _ = model.log_probs(own.inputs, model.begin(ROWS))
    assert torch.equal(own.inputs[0], batch.inputs[0])
    assert torch.equal(own.inputs[1:], log_probs[:-1].argmax(-1))
    half = listen_to_itself(model, batch, model.begin(ROWS), 0.5).inputs
    assert 0 < (half == batch.inputs).float().mean() < 1


def test_a_coin_is_thrown_for_each_column_and_step():
    model, truth = model_of(stack("gru-after")), torch.ones(30, ROWS, dtype=torch.long)
    with torch.no_grad():
        model.output.choice.weight.zero_()
        model.output.choice.bias.zero_()[0] = 200.0  # it always says 0, which is never true
    kept = listen_to_itself(model, Batch(truth, truth), model.begin(ROWS), 0.7).inputs[1:].double()
    assert ((kept.mean(0) > 0.4) & (kept.mean(0) < 0.95)).all()
    assert 0 < kept.std(1).count_nonzero() < len(kept), "the columns of a step agree by chance only"


@pytest.mark.parametrize("kind", ["symbols", "notes"])
def test_outputs_that_are_not_finite_are_left_to_the_loss(kind):
    if kind == "symbols":
        model, batch = model_of(stack("gru-after")), window(8)
    else:
        output = config.Output(choice=config.Bernoulli())
        recipe = config.Model(encoder=config.Frames(size=3), core=config.Stack(sizes=(4,)), output=output)
        model, notes = build_model(recipe, 6), torch.ones(STEPS, ROWS, 6)
        batch = Batch(notes, notes)
    with torch.no_grad():
        model.output.choice.weight.fill_(float("nan"))
    read = listen_to_itself(model, batch, model.begin(ROWS), 0.0)
    assert read.inputs.shape == batch.inputs.shape


def test_spelling_is_refused_by_rtrl():
    recipe = config.Model(encoder=config.Characters(widths=(1,), filters=(3,)), core=config.Stack(sizes=(4,)))
    with pytest.raises(UserError, match='kind = "rtrl" takes the derivatives of single steps by vectors of words'):
        RTRL().check(build_model(recipe, 6), 2)


def test_every_cell_is_covered():
    assert set(CELLS) <= set(CORES)
