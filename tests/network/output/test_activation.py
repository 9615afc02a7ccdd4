"""The output functions: their printed forms, their gradients, their limits."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from elman.network.output.activation import ACTIVATIONS, Activation, log_g, log_probs, shares, slope
from elman.network.output.flat import FlatChoice
from reference import outputs as reference


def flat(z, activation, **options):
    """A choice whose logits for the context 1 are z."""
    return FlatChoice(nn.Parameter(z.view(-1, 1).clone()), activation, bias=False, **options)


def log_probs_of(choice):
    return choice.log_probs(torch.ones(1, 1, 1, dtype=choice.weight.dtype))[0, 0]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_log_g_is_the_logarithm_of_g(activation):
    z = torch.linspace(-30, 30, 241, dtype=torch.float64)
    expected = np.log(reference.G[activation](z.numpy()))
    np.testing.assert_allclose(log_g(z, activation).numpy(), expected, atol=1e-9)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_are_the_thesis(activation):
    """(1 - f_j) s_j where i = j, -f_j s_j elsewhere, s = g' / g; for sigsoftmax (4.41) s = 2 - sigm z."""
    z = torch.tensor([-1.3, 0.2, 2.0, -0.4, 0.9], dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda z: log_g(z, activation).log_softmax(-1), z)
    np.testing.assert_allclose(jacobian.numpy(), reference.log_jacobian(activation, z.numpy()), rtol=1e-9)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_log_g_and_its_gradient_are_finite_anywhere(activation, dtype):
    z = torch.tensor([-1e30, -1e4, -100, -15, -14.999, 0, 15, 100, 1e4, 1e30], dtype=dtype).requires_grad_()
    value = log_g(z, activation)
    (gradient,) = torch.autograd.grad(value.sum(), z)
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()
    if ACTIVATIONS[activation].monotone:
        assert (gradient >= 0).all()
        assert (value.diff() >= 0).all()


def test_an_activation_cannot_be_made_without_its_slope():
    with pytest.raises(TypeError, match="slope"):
        Activation(torch.exp, torch.exp, monotone=True)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_fused_forms_are_those_of_log_g(activation):
    """The slope that kernels form gradients with is the derivative; forms that overwrite z give the same values."""
    z = torch.linspace(-6, 6, 40, dtype=torch.float64).view(4, 10).requires_grad_()
    value = log_g(z, activation)
    (gradient,) = torch.autograd.grad(value.sum(), z)
    for safe in (True, False):
        found = shares(z.detach().clone(), activation, safe=safe)
        p = found.amounts if found.total is None else found.amounts / found.total
        torch.testing.assert_close(p, value.softmax(-1))
        torch.testing.assert_close(torch.ones_like(z) if found.slope is None else found.slope, gradient)
    torch.testing.assert_close(log_probs(z.detach().clone(), activation), value.log_softmax(-1))
    along = slope(z.detach(), activation)
    torch.testing.assert_close(torch.ones_like(z) if along is None else along, gradient)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_softplus_is_exact_where_it_underflows(dtype):
    """log softplus(z) tends to z: no epsilon is needed, nothing is cut off."""
    z = torch.tensor([-800.0, -200, -50, -20, -15.001, -14.999, -10, -1], dtype=dtype).requires_grad_()
    exact = [x if x < -30 else np.log(np.log1p(np.exp(x))) for x in z.tolist()]
    value = log_g(z, "softplus")
    np.testing.assert_allclose(value.detach().numpy(), exact, rtol=1e-5 if dtype == torch.float32 else 1e-12)
    (gradient,) = torch.autograd.grad(value.sum(), z)
    torch.testing.assert_close(gradient[:4], torch.ones(4, dtype=dtype), rtol=1e-6, atol=0)


def test_relu_normalises_its_epsilon_too():
    """(relu z_i + eps) / sum_m (relu z_m + eps) sums to one, also where every z is negative."""
    for z in ([2.0, -1.0, 6.0, -3.0], [-2.0, -1.0, -6.0, -3.0]):
        given = torch.tensor(z, dtype=torch.float64)
        p = log_probs_of(flat(given, "relu")).exp()
        g = np.maximum(z, 0) + 1e-8
        np.testing.assert_allclose(p.detach().numpy(), g / g.sum(), rtol=1e-12)


def test_sigsoftmax_tends_to_softmax_as_the_shift_grows():
    """Theorem 4.4 of the thesis: with z + b 1, sigm tends to 1 and the difference falls like exp(-b)."""
    z = torch.tensor([-2.0, 0.5, 1.0, 3.0], dtype=torch.float64)
    softmax, distances = z.softmax(-1), []
    for shift in (0.0, 5.0, 10.0, 20.0, 40.0):
        choice = flat(z, "sigsoftmax", shift=True).double()
        nn.init.constant_(choice.shift, shift)
        distances.append((log_probs_of(choice).exp() - softmax).abs().max().item())
    assert distances[0] > 0.01
    assert all(later < earlier * np.exp(-4) for earlier, later in pairwise(distances))
    assert distances[-1] < 1e-14


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_shift_changes_every_activation_but_softmax(activation):
    z = torch.tensor([-2.0, 0.5, 1.0, 3.0], dtype=torch.float64)
    one, other = flat(z, activation, shift=True).double(), flat(z, activation, shift=True).double()
    nn.init.constant_(other.shift, 1.5)
    assert torch.allclose(log_probs_of(one), log_probs_of(other)) == (activation == "softmax")


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_rank_of_the_log_output_matrix(activation):
    """Softmax is bound to rank D + 1, the bottleneck of Yang et al. 2018; a non-linear log g is not."""
    choice = FlatChoice(nn.Parameter(torch.randn(30, 2).double()), activation, bias=False)
    contexts = torch.randn(40, 1, 2, dtype=torch.float64)
    singular = torch.linalg.svdvals(choice.log_probs(contexts).squeeze(1).detach())
    rank = (singular > 1e-10 * singular[0]).sum()
    assert rank <= 3 if activation == "softmax" else rank > 10
