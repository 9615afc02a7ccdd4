"""The checks for the parts of plug-ins: elman's own pass, wrong ones fail by the rule they break."""

import pytest
import torch
from torch.nn.functional import linear

from elman.network.cells import cell as cells
from elman.network.output.activation import ACTIVATIONS, Activation
from elman.testing import check_activation, check_cell
from support import networks


@pytest.mark.slow
@pytest.mark.parametrize("name", networks.CELL_RECORDS)
def test_every_cell_keeps_the_rules(name):
    check_cell(networks.CELL_RECORDS[name])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_keeps_the_rules(name):
    check_activation(ACTIVATIONS[name])


def plain(weights, x, state):
    return (torch.tanh(linear(x, weights.weight_ih, weights.bias_ih) + linear(state[0], weights.weight_hh)),)


def in_place(weights, x, state):
    state[0].mul_(0.5)
    return plain(weights, x, state)


def mixes_rows(weights, x, state):
    return (plain(weights, x, state)[0] + x.mean(0, keepdim=True)[:, :1],)


def deaf(weights, x, state):
    return (state[0] * 0.5,)


def two_slots(weights, x, state):
    return (*plain(weights, x, state), state[0])


def not_the_gradient(weights, x, state):
    (h,) = plain(weights, x, state)
    return (h.detach() + 0.5 * (h - h.detach()),)


def infinite(weights, x, state):
    return (plain(weights, x, state)[0] / 0.0,)


def wrong_sequence(weights, xs, state):
    outputs, after = cells.unroll(plain, weights, xs, state)
    return outputs * 1.001, after


def wrong_gradient(weights, xs, state):
    outputs, after = cells.unroll(plain, weights, xs, state)
    return outputs.detach() + 0.9 * (outputs - outputs.detach()), after


@pytest.mark.parametrize(
    ("cell", "rule"),
    [
        (networks.toy(in_place), "must not change its inputs"),
        (networks.toy(mixes_rows), "sequences do not depend on each other"),
        (networks.toy(deaf), "outputs depend on the inputs"),
        (networks.toy(two_slots), "returns as many tensors of state"),
        (networks.toy(infinite), "outputs are finite"),
        (networks.toy(not_the_gradient), "Jacobian"),
        (networks.toy(plain, wrong_gradient), "the scan is the loop"),
    ],
)
def test_a_wrong_cell_is_found(cell, rule):
    with pytest.raises((AssertionError, RuntimeError), match=rule):
        check_cell(cell)


def test_a_scan_with_other_values_is_found():
    with pytest.raises(AssertionError):
        check_cell(networks.toy(plain, wrong_sequence))


def test_a_cell_that_hears_the_future_is_found():
    def ahead(weights, xs, state):
        outputs, after = cells.unroll(plain, weights, xs.roll(-1, 0), state)
        return outputs, after

    with pytest.raises(AssertionError, match=r"windows give|no later input"):
        check_cell(networks.toy(plain, ahead))


@pytest.mark.parametrize(
    ("activation", "rule"),
    [
        (Activation(lambda z: z, lambda z: z, lambda z: 2 * torch.ones_like(z), monotone=True), "slope is"),
        (Activation(lambda z: -z, lambda z: -z, lambda z: -torch.ones_like(z), monotone=True), "falls somewhere"),
        (Activation(lambda z: z, lambda z: z + 1, 1, monotone=True), "not close"),
        (Activation(lambda z: z.log(), lambda z: z.log(), lambda z: 1 / z, monotone=True), "finite"),
    ],
)
def test_a_wrong_activation_is_found(activation, rule):
    with pytest.raises(AssertionError, match=rule):
        check_activation(activation)
