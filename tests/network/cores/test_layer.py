"""Which form of its cell a layer takes."""

from itertools import product

import pytest
import torch

from elman import config
from elman.network.cores.layer import Layer
from elman.network.fast import policy
from elman.network.fast.precision import products_in
from support import networks


def layer(inputs=4, units=4):
    """Whose step gives ones and whose function over time gives twos."""

    def gives(value):
        return lambda weights, xs, state: (torch.full_like(xs, value), tuple(value * part for part in state))

    def step(weights, x, state):
        return (torch.ones_like(x),)

    return Layer(networks.toy(step, gives(2.0)), inputs, units)


@pytest.mark.parametrize(
    ("steps", "gradients", "precision", "least", "expected"),
    [
        (1, False, "float32", 1000, 1.0),
        (2, False, "float32", 1000, 2.0),
        (1, True, "float32", 1000, 2.0),
        (1, False, "bf16", 1000, 2.0),
        (1, False, "int8", 1000, 2.0),
        (1, False, "float32", 3 * 16, 2.0),
        (1, False, "float32", 3 * 16 + 1, 1.0),
    ],
)
def test_one_small_step_without_gradients_is_the_plain_one(monkeypatch, steps, gradients, precision, least, expected):
    """Three rows and matrices of 4 x 4; `least` multiply-adds make a product large."""
    monkeypatch.setattr(policy, "LEAST_ONEDNN", least)
    toy = layer()
    with torch.set_grad_enabled(gradients), products_in(precision):
        outputs, _ = toy(torch.zeros(steps, 3, 4), toy.begin(3))
    assert outputs.eq(expected).all()


@pytest.mark.parametrize(("inputs", "units", "expected"), [(4, 4, 1.0), (5, 4, 2.0), (2, 5, 2.0)])
@torch.no_grad()
def test_the_larger_of_both_products_decides(monkeypatch, inputs, units, expected):
    """One row, matrices [units, inputs] and [units, units]; products of 20 multiply-adds and more are large."""
    monkeypatch.setattr(policy, "LEAST_ONEDNN", 20)
    toy = layer(inputs, units)
    outputs, _ = toy(torch.zeros(1, 1, inputs), toy.begin(1))
    assert outputs.eq(expected).all()


@pytest.mark.parametrize("name", networks.CELLS)
def test_under_autocast_a_layer_computes_in_the_type_of_its_weights(name):
    """Also over vectors and from a state of another type, as embeddings under autocast may be."""
    made = Layer(networks.CELLS[name], 4, 4)
    made.initialise(config.Initialisation())
    for kind, gradients in product((torch.float32, torch.bfloat16), (True, False)):
        xs = torch.randn(3, 2, 4).to(kind)
        state = tuple(torch.randn_like(part).abs().to(kind) for part in made.begin(2))
        with torch.set_grad_enabled(gradients):
            expected, after = made(xs.float(), tuple(part.float() for part in state))
            with torch.autocast("cpu", dtype=torch.bfloat16):
                outputs, reached = made(xs, state)
        torch.testing.assert_close((outputs, *reached), (expected, *after), rtol=0, atol=0)
