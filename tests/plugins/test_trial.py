"""Cells and activations of plug-ins whose code is broken: one line that says where, before anything is trained."""

import functools
import re

import pytest
import torch
from torch.nn.functional import linear

from elman import config
from elman.config import plugins
from elman.data.batches import Batch
from elman.errors import UserError
from elman.learning.constraint import ConstrainedCore
from elman.network.cells.cell import checked
from elman.network.cells.trial import tried
from elman.network.cores.core import build_core
from elman.network.output.activation import ACTIVATIONS, Activation
from elman.network.output.activation import tried as tried_activation
from elman.objective.loss import Objective
from support import networks

calling = functools.partial(plugins.calling, "it")


def right(weights, x, state):
    return (torch.tanh(linear(x, weights.weight_ih, weights.bias_ih) + linear(state[0], weights.weight_hh)),)


def too_few(weights, x):
    return right(weights, x, ())


def wide(weights, x, state):
    return (linear(x, weights.weight_ih).repeat(1, 2),)


def crossed(weights, x, state):
    return (linear(x, weights.weight_hh),)


def infinite(weights, x, state):
    return (right(weights, x, state)[0] / 0.0,)


def bare(weights, x, state):
    return right(weights, x, state)[0]


def sequence(weights, xs, state):
    return xs


def test_every_cell_passes():
    before = torch.get_rng_state()
    for name, cell in networks.CELL_RECORDS.items():
        tried(cell, calling, "it")
        assert torch.equal(before, torch.get_rng_state()), name


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        (networks.toy(too_few), "it: TypeError: too_few() takes 2 positional arguments but 3 were given"),
        (networks.toy(wide), "it: its step returned [2, 8] as tensor 0 of its state, which is [2, 4] here"),
        (networks.toy(crossed), "it: RuntimeError: "),
        (networks.toy(infinite), "it: its step gives values that are not finite"),
        (networks.toy(bare), "it: its step must return a tuple of tensors, the state; it returned Tensor"),
        (networks.toy(right, slots=2), "it: its step returned 1 tensors of state, but its cell has 2"),
        (networks.toy(right, sequence), "it: its scan must return outputs [T, B, H] and the state"),
    ],
)
def test_a_broken_cell_is_refused(cell, line):
    with pytest.raises(UserError, match=re.escape(line)):
        tried(cell, calling, "it")


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_passes(name):
    assert tried_activation(ACTIVATIONS[name], "it") is ACTIVATIONS[name]


@pytest.mark.parametrize(
    ("activation", "line"),
    [
        (torch.exp, "it: <built-in method exp"),
        (Activation(torch.log, torch.log, 1, monotone=True), "it: log g is not finite at z = -30; no probability"),
        (Activation(torch.sum, torch.sum, 1, monotone=True), "it: log g must return a tensor of the shape"),
    ],
)
def test_a_broken_activation_is_refused(activation, line):
    with pytest.raises(UserError, match=re.escape(line)):
        tried_activation(activation, "it")


def test_an_error_of_a_cell_is_named_by_its_part(monkeypatch):
    cell = networks.toy(too_few)
    assert checked(cell) is cell  # elman's own are not tried
    monkeypatch.setitem(plugins.owners, type(cell), "p")
    with pytest.raises(UserError, match=r"the plug-in p: 'toy': TypeError: .* takes 2 positional arguments but 3"):
        checked(cell)


class Half(config.Criterion, frozen=True, tag="half"):
    def __call__(self, seen):
        return seen.mean(seen.log_probs[..., 0])


class Listed(config.Criterion, frozen=True, tag="listed"):
    def __call__(self, seen):
        return seen.log_probs[..., 0], seen.log_probs[..., 0]


class Wide(config.Penalty, frozen=True, tag="wide"):
    def __call__(self, seen):
        return self.weight * seen.trace.top.abs()


class Bare(config.Constraint, frozen=True, tag="bare"):
    def projector(self, *, of_input):
        return None


@pytest.mark.parametrize(
    ("objective", "line"),
    [
        (Objective(reduction=Half()), "the plug-in p: 'half': its call must return a loss and the NLL [T, B]"),
        (Objective(reduction=Listed()), "the plug-in p: 'listed': its call must return a scalar tensor, not tensor("),
        (Objective([Wide(weight=1.0)]), "the plug-in p: 'wide': its call must return a scalar tensor, not tensor("),
    ],
)
def test_a_loss_or_a_penalty_that_is_no_number_is_named(objective, line, monkeypatch):
    for part in (Half, Listed, Wide):
        monkeypatch.setitem(plugins.owners, part, "p")
    model, symbols = networks.model(), torch.randint(7, (4, 2))
    with pytest.raises(UserError, match=re.escape(line)):
        objective(model, Batch(symbols, symbols), model.begin(2))


def test_a_constraint_without_a_projector_is_named(monkeypatch):
    monkeypatch.setitem(plugins.owners, Bare, "p")
    core = build_core(config.Stack(sizes=(4,)), 3, locked=True)
    with pytest.raises(UserError, match="the plug-in p: 'bare': its projector is None, not a Projector"):
        ConstrainedCore(core, Bare())
