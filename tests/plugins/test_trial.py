"""Cells and activations of plug-ins whose code is broken: one line that says where, before anything is trained."""

import functools
import re

import pytest
import torch
from torch.nn.functional import linear

from elman.config import plugins
from elman.errors import UserError
from elman.network.cells.build import build_cell, tried
from elman.network.cells.cell import Cell, Structured
from elman.network.output.activation import ACTIVATIONS, Activation
from elman.network.output.activation import tried as tried_activation
from support import networks

calling = functools.partial(plugins.calling, "it")


def right(weights, x, state):
    return (torch.tanh(linear(x, weights.input, weights.input_bias) + linear(state[0], weights.hidden)),)


def too_few(weights, x):
    return right(weights, x, ())


def wide(weights, x, state):
    return (linear(x, weights.input).repeat(1, 2),)


def crossed(weights, x, state):
    return (linear(x, weights.hidden),)


def infinite(weights, x, state):
    return (right(weights, x, state)[0] / 0.0,)


def bare(weights, x, state):
    return right(weights, x, state)[0]


def sequence(weights, xs, state):
    return xs


def test_every_cell_passes():
    before = torch.get_rng_state()
    for name, record in networks.CELL_RECORDS.items():
        cell = build_cell(record)
        assert tried(cell, calling, "it") is cell, name
        assert torch.equal(before, torch.get_rng_state()), name


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        (right, "it: its builder returned <function right"),
        (Cell(1, 1, too_few), "it: TypeError: too_few() takes 2 positional arguments but 3 were given"),
        (Cell(1, 1, wide), "it: its step returned [2, 8] as tensor 0 of its state, which is [2, 4] here"),
        (Cell(1, 1, crossed), "it: RuntimeError: "),
        (Cell(1, 1, infinite), "it: its step gives values that are not finite"),
        (Cell(1, 1, bare), "it: its step must return a tuple of tensors, the state; it returned Tensor"),
        (Cell(1, 2, right), "it: its step returned 1 tensors of state, but its Cell has 2"),
        (Cell(1, 1, right, sequence=sequence), "it: its sequence must return outputs [T, B, H] and the state"),
        (Cell(1, 1, right, structured=Structured(lambda: (1, 1), torch.zeros_like)), "it: TypeError"),
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


def test_an_error_of_a_builder_is_named_by_its_part(monkeypatch):
    record = next(iter(networks.CELL_RECORDS.values()))
    monkeypatch.setitem(plugins._owners, type(record), "p")
    assert isinstance(build_cell(record), Cell)
    tag = record.__struct_config__.tag
    monkeypatch.setattr("elman.network.cells.build.resolve_name", lambda name: lambda: None)
    with pytest.raises(UserError, match=rf"the plug-in p: '{tag}': TypeError: .* takes 0 positional arguments but 1"):
        build_cell(record)
