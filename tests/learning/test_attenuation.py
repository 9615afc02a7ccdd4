"""BPTT with an attenuated past: by value, between its two forms, and at both ends of the factor."""

import numpy as np
import pytest
import torch

from elman import config
from elman.data.batches import Batch
from elman.errors import UserError
from elman.learning.bptt import WholeWindow
from elman.learning.lookback import Attenuated, Lookback
from elman.learning.update import build_learner
from elman.network.build import build_model
from elman.objective.loss import Objective
from elman.study.lab.networks import learning_rule
from reference.learning import attenuated_bptt
from support import networks

WORDS, STEPS, ROWS = 5, 6, 3


def model_of(cell, sizes=(4, 4)):
    recipe = config.Model(
        encoder=config.Lookup(size=3),
        core=config.Stack(sizes=sizes, cell=cell, biases=1),
        output=config.Output(choice=config.Flat(bias=False)),
    )
    return networks.randomise(build_model(recipe, WORDS), 0.6)


def window(steps=STEPS):
    tokens = torch.randint(WORDS, (steps + 1, ROWS))
    return Batch(tokens[:-1], tokens[1:])


def gradients(learner, model, *batches):
    model.zero_grad()
    state = learner.begin(model, ROWS)
    for batch in batches:
        loss, state = learner(model, Objective(reduction="sum"), batch, state)
    assert not loss.objective.requires_grad
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("rule", [Attenuated(0.6), Lookback(STEPS, 0.6)])
def test_the_gradient_is_that_of_the_equations(rule):
    """The second window too, whose state is that after the first."""
    model, batches = model_of(config.Elman(), (4,)), (window(), window())
    found = gradients(rule, model, *batches)
    (layer,), W = model.core.layers, model.encoder.weight.detach().numpy()
    W_x, W_h, b, V = (
        part.detach().numpy() for part in (layer.weight_ih, layer.weight_hh, layer.bias_ih, model.output.choice.weight)
    )
    wanted, vectors, h = [np.zeros_like(part) for part in (W_x, W_h, b, V)], np.zeros_like(W), np.zeros((ROWS, 4))
    for batch in batches:
        xs = W[batch.inputs.numpy()]
        *parts, to_x = attenuated_bptt(W_x, W_h, b, V, xs, batch.targets.numpy(), h, 0.6)
        wanted = [total + part for total, part in zip(wanted, parts, strict=True)]
        np.add.at(vectors, batch.inputs.numpy(), to_x)
        for x in xs:
            h = np.tanh(x @ W_x.T + h @ W_h.T + b)
    names = ("core.layers.0.weight_ih", "core.layers.0.weight_hh", "core.layers.0.bias_ih", "output.choice.weight")
    for name, value in zip((*names, "encoder.weight"), (*wanted, vectors), strict=True):
        np.testing.assert_allclose(found[name].numpy(), value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("cell", [config.LSTM(), config.GRU()])
def test_one_pass_and_overlapping_look_backs_are_the_same(cell):
    """In two layers, where errors on their way down are not attenuated."""
    model, batch = model_of(cell), window()
    whole, overlapping, cut = (
        gradients(rule, model, batch) for rule in (Attenuated(0.8), Lookback(STEPS, 0.8), Lookback(2, 0.8))
    )
    torch.testing.assert_close(whole, overlapping)
    assert not torch.allclose(cut["core.layers.0.weight_hh"], whole["core.layers.0.weight_hh"])


def test_both_ends_of_the_factor():
    """1 is BPTT over the window and 0 is BPTT(1); between them neither."""
    model, batch = model_of(config.LSTM()), window()
    whole, one, between = (gradients(rule, model, batch) for rule in (WholeWindow(), Lookback(1), Attenuated(0.5)))
    torch.testing.assert_close(gradients(Attenuated(1.0), model, batch), whole)
    torch.testing.assert_close(gradients(Attenuated(0.0), model, batch), one)
    for end in (whole, one):
        assert not torch.allclose(between["core.layers.0.weight_hh"], end["core.layers.0.weight_hh"])


def training(**rule):
    return config.Training(epochs=1, optimiser=config.SGD(lr=1.0), rule=config.BPTT(**rule))


def test_recipes_and_the_laboratory_name_the_rule():
    plain = config.Model(encoder=config.Lookup(size=3), core=config.Stack(sizes=(4,)))
    for rule, kind in (({"attenuation": 0.7}, Attenuated), ({"attenuation": 0.7, "steps": 2}, Lookback)):
        learner = build_learner(training(**rule), plain)
        assert type(learner) is kind
        assert learner.factor == 0.7
    assert type(build_learner(training(), plain)) is WholeWindow
    assert learning_rule("bptt@0.9").factor == 0.9
    for name in ("bptt@1.5", "bptt@", "bptt@-1"):
        with pytest.raises(UserError, match="there is no rule"):
            learning_rule(name)
    held = config.Model(encoder=config.Lookup(size=3), core=config.Stack(sizes=(4,), output_dropout=0.5))
    with pytest.raises(UserError, match=r"model\.core\.output_dropout does not allow: .* without steps or attenuation"):
        build_learner(training(attenuation=0.7), held)
