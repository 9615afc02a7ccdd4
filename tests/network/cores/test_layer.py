"""Which form of its cell a layer takes."""

import pytest
import torch

from elman.network import matmul
from elman.network.cells.cell import Cell
from elman.network.cores.layer import Layer
from elman.network.precision import products_in


def layer():
    """Whose step gives ones and whose function over time gives twos."""

    def gives(value):
        return lambda weights, xs, state: (torch.full_like(xs, value), tuple(value * part for part in state))

    def step(weights, x, state):
        return (torch.ones_like(x),)

    return Layer(Cell(1, 1, step, gives(2.0), "toy"), 4, 4)


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
    monkeypatch.setattr(matmul, "LEAST_ONEDNN", least)
    toy = layer()
    with torch.set_grad_enabled(gradients), products_in(precision):
        outputs, _ = toy(torch.zeros(steps, 3, 4), toy.begin(3))
    assert outputs.eq(expected).all()
