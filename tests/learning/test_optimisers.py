"""Optimisers against their papers' rules, clipping, and L1."""

import math

import pytest
import torch
from torch import nn

from elman import config
from elman.learning.optimisers import Optimiser
from elman.learning.update import add_l1, clip_gradients


def parameters():
    made = [nn.Parameter(torch.randn(4, 3)), nn.Parameter(torch.randn(5)), nn.Parameter(torch.randn(2))]
    for parameter in made[:2]:
        parameter.grad = torch.randn_like(parameter) * 3
    return made


def sgd(w, g, memory, lr):
    memory["v"] = 0.5 * memory.get("v", 0) + g
    return w - lr * memory["v"]


def adam(w, g, memory, lr):
    """Kingma & Ba 2015, Algorithm 1."""
    t = memory["t"] = memory.get("t", 0) + 1
    m = memory["m"] = 0.8 * memory.get("m", 0) + 0.2 * g
    v = memory["v"] = 0.95 * memory.get("v", 0) + 0.05 * g**2
    return w - lr * (m / (1 - 0.8**t)) / ((v / (1 - 0.95**t)).sqrt() + 1e-6)


def rmsprop(w, g, memory, lr):
    """Tieleman & Hinton 2012, lecture 6.5."""
    memory["v"] = 0.9 * memory.get("v", 0) + 0.1 * g**2
    return w - lr * g / (memory["v"].sqrt() + 1e-6)


def rmsprop_with_momentum(w, g, memory, lr):
    """Heavy ball on what RMSprop would take as its step (Graves 2013, eqs 38-41, without the mean)."""
    memory["v"] = 0.9 * memory.get("v", 0) + 0.1 * g**2
    memory["step"] = 0.5 * memory.get("step", 0) + g / (memory["v"].sqrt() + 1e-6)
    return w - lr * memory["step"]


RULES = {
    "sgd": (config.SGD(lr=0.1, momentum=0.5), sgd),
    "adam": (config.Adam(lr=0.1, betas=(0.8, 0.95), eps=1e-6), adam),
    "rmsprop": (config.RMSprop(lr=0.1, alpha=0.9, eps=1e-6), rmsprop),
    "rmsprop with momentum": (config.RMSprop(lr=0.1, alpha=0.9, eps=1e-6, momentum=0.5), rmsprop_with_momentum),
}


@pytest.mark.parametrize("rule", RULES)
def test_optimisers_are_their_rules(rule):
    """Weight decay is added to the gradient; a new rate holds from the next step on."""
    recipe, transcription = RULES[rule]
    w = nn.Parameter(torch.randn(4, 3, dtype=torch.float64))
    optimiser = Optimiser(recipe, [w], weight_decay=0.01)
    expected, memory = w.detach().clone(), {}
    for lr in (0.1, 0.1, 0.02):
        w.grad = torch.randn_like(w)
        expected = transcription(expected, w.grad + 0.01 * expected, memory, lr)
        optimiser.lr = lr
        optimiser.step()
        torch.testing.assert_close(w.detach(), expected)


def test_decoupled_decay_takes_the_weights_not_the_gradient():
    """Loshchilov & Hutter 2019: without a gradient the weights shrink by lr * decay, at the rate of the step."""
    w = nn.Parameter(torch.ones(3, dtype=torch.float64))
    optimiser = Optimiser(config.Adam(lr=0.1, decoupled=True), [w], weight_decay=0.5)
    w.grad = torch.zeros_like(w)
    optimiser.step()
    torch.testing.assert_close(w.detach(), torch.full((3,), 0.95).double())
    optimiser.lr = 0.02
    optimiser.step()
    torch.testing.assert_close(w.detach(), torch.full((3,), 0.95 * 0.99).double())


@pytest.mark.parametrize("limit", [None, 0.25, 1e6])
def test_clipping_by_the_global_norm(limit):
    given = parameters()
    before = [parameter.grad.clone() for parameter in given[:2]]
    norm = math.sqrt(sum(gradient.square().sum().item() for gradient in before))
    assert clip_gradients(given, limit).item() == pytest.approx(norm)
    scale = 1.0 if limit is None else min(1.0, limit / norm)
    for parameter, gradient in zip(given, before, strict=False):
        torch.testing.assert_close(parameter.grad, gradient * scale)
    assert given[2].grad is None


def test_clipping_by_tensor():
    given = parameters()
    given[1].grad *= 0.001
    before = [parameter.grad.clone() for parameter in given[:2]]
    total = math.sqrt(sum(gradient.square().sum().item() for gradient in before))
    assert clip_gradients(given, 0.5, by="tensor").item() == pytest.approx(total)
    assert given[0].grad.norm().item() == pytest.approx(0.5, rel=1e-4)
    torch.testing.assert_close(given[1].grad, before[1])


def test_clipping_by_value():
    """Numbers beyond the limit end at it, the others and what has no gradient stay; the norm is that before."""
    given = parameters()
    given[0].grad[0] = torch.tensor([-7.0, 0.125, 7.0])
    before = [parameter.grad.clone() for parameter in given[:2]]
    total = math.sqrt(sum(gradient.square().sum().item() for gradient in before))
    assert clip_gradients(given, 0.5, by="value").item() == pytest.approx(total)
    assert given[0].grad[0].tolist() == [-0.5, 0.125, 0.5]
    for parameter, gradient in zip(given, before, strict=False):
        assert torch.equal(parameter.grad, gradient.clamp(-0.5, 0.5))
    assert given[2].grad is None
    assert clip_gradients(given[2:], 0.5, by="value").item() == 0


def test_l1_adds_the_sign():
    given = parameters()
    before = given[0].grad.clone()
    add_l1(given, 0.3)
    torch.testing.assert_close(given[0].grad, before + 0.3 * given[0].detach().sign())
    assert given[2].grad is None


@pytest.mark.parametrize("rule", RULES)
def test_a_step_is_a_change_of_the_parameters(rule):
    """What is kept of parameters, such as the vectors of spelled words, is computed again by their versions."""
    used, unused, _ = parameters()
    optimiser = Optimiser(RULES[rule][0], [used, unused])
    unused.grad = None
    before = used._version, unused._version
    optimiser.step()
    assert used._version > before[0]
    assert unused._version == before[1]
