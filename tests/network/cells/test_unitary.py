"""The unitary cell: W keeps every norm, forward and back, and its parts stand in the paper's order."""

import math

import numpy as np
import pytest
import torch

from elman import config
from elman.errors import UserError
from elman.network.build import build_model
from elman.network.cells.unitary import Unitary, evolve, mod_relu, permutation
from elman.network.cores.layer import Layer
from reference import cells as reference


def recurrent(n, dtype=torch.float64):
    return torch.empty(3, n, dtype=dtype).uniform_(-math.pi, math.pi), torch.empty(4, n, dtype=dtype).uniform_(-1, 1)


def as_complex(*shape):
    return torch.complex(*torch.randn(2, *shape, dtype=torch.float64))


@pytest.mark.parametrize("n", [1, 2, 7, 64])
def test_the_recurrent_map_is_unitary(n):
    """||W h|| = ||h||, W* W = I, and the matrix is that of the paper's factors."""
    (theta, v), h = recurrent(n), as_complex(5, n)
    torch.testing.assert_close(evolve(theta, v, h).abs().square().sum(1), h.abs().square().sum(1), rtol=1e-13, atol=0)
    matrix = evolve(theta, v, torch.eye(n, dtype=torch.complex128)).t().numpy()
    np.testing.assert_allclose(matrix.conj().T @ matrix, np.eye(n), atol=1e-13)
    theta, v = theta.numpy(), v.numpy()
    expected = reference.unitary_matrix(theta, v[0] + 1j * v[1], v[2] + 1j * v[3], permutation(n))
    np.testing.assert_allclose(matrix, expected, atol=1e-13)


@pytest.mark.slow
def test_neither_states_nor_gradients_fade_in_a_thousand_steps():
    """With b = 0 and no input every state and every gradient has the norm of the first, 1e-10 of it at most apart."""
    layer = Layer(Unitary(), 1, 12, biases=0).double()
    layer.initialise(config.Initialisation())
    with torch.no_grad():
        layer.weight_ih.zero_()
    start = torch.randn(1, 12, dtype=torch.float64, requires_grad=True)
    outputs, (last,) = layer(torch.zeros(1000, 1, 1, dtype=torch.float64), (start,))
    torch.testing.assert_close(outputs.norm(dim=2), start.norm().expand(1000, 1), rtol=1e-10, atol=0)
    pull = torch.randn_like(last)
    (gradient,) = torch.autograd.grad((pull * last).sum(), start)
    assert gradient.norm().item() == pytest.approx(pull.norm().item(), rel=1e-10)
    assert not torch.allclose(outputs[0], outputs[1])


def test_mod_relu_turns_off_what_is_small_and_keeps_the_angle():
    """Both sides of |z| = -b."""
    z = torch.tensor([[3.0, 0.3, 4.0, 0.4]], dtype=torch.float64)  # 3 + 4i and 0.3 + 0.4i
    found = mod_relu(z, torch.tensor([-1.0, -1.0], dtype=torch.float64))
    torch.testing.assert_close(found, torch.tensor([[2.4, 0.0, 3.2, 0.0]]).double(), rtol=1e-5, atol=1e-9)
    assert torch.equal(mod_relu(z, torch.zeros(2).double()), z)
    nothing = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(mod_relu(nothing, torch.ones(2).double()).sum(), nothing)
    assert slope.isfinite().all()


def test_it_begins_as_in_the_paper():
    layer = Layer(Unitary(), 3, 2000)
    layer.initialise(config.Initialisation())
    angles, reflections, b = layer.theta, layer.reflections, layer.threshold
    for part, bound in ((angles, math.pi), (reflections, 1.0)):
        assert part.abs().max() <= bound
        assert part.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
    assert not b.any()


def test_the_permutation_is_one_and_always_the_same():
    assert sorted(permutation(50)) == list(range(50))
    assert permutation(8) == (4, 2, 7, 0, 5, 3, 1, 6)


def test_what_it_cannot_do_is_one_line():
    with pytest.raises(UserError, match="complex units of two numbers each, and 5 is odd"):
        Layer(Unitary(), 3, 5)
    record = config.Stack(sizes=(4,), cell=config.Unitary(), weight_drop=0.1)
    with pytest.raises(UserError, match="the cell unitary has none"):
        build_model(config.Model(encoder=config.Lookup(size=3), core=record), 7)
