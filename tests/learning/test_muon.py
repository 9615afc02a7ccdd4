"""Muon against transcriptions of its rule, and against torch's."""

import numpy as np
import pytest
import torch
from torch import nn

from elman import config
from elman.learning.optimisers import COEFFICIENTS, Optimiser, OrthogonalSteps, orthogonal_factor
from elman.learning.update import build_optimiser
from elman.network.fast.precision import products_in
from support import networks


def orthogonal(matrix, iterations):
    """Newton-Schulz by the polynomial of the singular values alone."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    values = values / np.linalg.norm(values)
    a, b, c = COEFFICIENTS
    for _ in range(iterations):
        values = a * values + b * values**3 + c * values**5
    return left * values @ right


def weights(*shapes):
    return [nn.Parameter(torch.randn(*shape, dtype=torch.float64)) for shape in shapes]


@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (1, 5), (5, 5)])
def test_the_rule_of_the_matrices(shape, nesterov):
    (w,) = weights(shape)
    optimiser = OrthogonalSteps(
        config.Muon(lr=0.1, momentum=0.8, nesterov=nesterov, iterations=3), [w], [w], weight_decay=0.5
    )
    expected, momentum = w.detach().numpy().copy(), np.zeros(shape)
    for lr in (0.1, 0.05, 0.02):
        w.grad = torch.randn_like(w)
        gradient = w.grad.numpy()
        momentum = 0.8 * momentum + 0.2 * gradient
        direction = 0.8 * momentum + 0.2 * gradient if nesterov else momentum
        scale = max(1, shape[0] / shape[1]) ** 0.5
        expected = (1 - 0.5 * lr) * expected - lr * scale * orthogonal(direction, 3)
        optimiser.lr = lr
        optimiser.step()
        np.testing.assert_allclose(w.detach().numpy(), expected, atol=1e-9)


@pytest.mark.parametrize("shape", [(24, 7), (7, 24)])
def test_torch_takes_the_same_steps(shape):
    """torch's products are always in bf16."""
    start = torch.randn(shape)
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    optimiser = OrthogonalSteps(config.Muon(lr=0.1), [ours], [ours], weight_decay=0.01)
    other = torch.optim.Muon([theirs], lr=0.1, weight_decay=0.01, momentum=0.95)
    for _ in range(4):
        ours.grad = torch.randn(shape)
        theirs.grad = ours.grad.clone()
        with products_in("bf16"):
            optimiser.step()
        other.step()
        torch.testing.assert_close(ours.detach(), theirs.detach(), atol=0.01, rtol=0)


def test_five_iterations_bring_singular_values_near_one():
    matrix = torch.linalg.qr(torch.randn(30, 30)).Q * torch.logspace(-1.5, 0, 30)
    values = torch.linalg.svdvals(orthogonal_factor(matrix, 5))
    assert 0.6 < values.min() < values.max() < 1.3
    assert not torch.linalg.svdvals(orthogonal_factor(matrix, 1)).min() > 0.6


def test_without_a_gradient_nothing_moves():
    w, other = weights((3, 3), (3,))
    optimiser = OrthogonalSteps(config.Muon(), [w, other], [w])
    before = w.detach().clone(), other.detach().clone(), w._version
    optimiser.step()
    assert torch.equal(w, before[0])
    assert torch.equal(other, before[1])
    assert w._version == before[2]
    w.grad = torch.zeros_like(w)
    optimiser.step()
    assert torch.equal(w, before[0])


def test_all_others_are_adams():
    """Their rate follows that of the matrices."""
    w, other = weights((3, 3), (4, 2))
    same = nn.Parameter(other.detach().clone())
    optimiser = OrthogonalSteps(
        config.Muon(lr=0.1, adam_lr=0.03, betas=(0.7, 0.9), eps=1e-5), [w, other], [w], weight_decay=0.2
    )
    adam = Optimiser(config.Adam(lr=0.03, betas=(0.7, 0.9), eps=1e-5, decoupled=True), [same], weight_decay=0.2)
    for share in (1.0, 0.5, 0.1):
        w.grad, other.grad = torch.randn_like(w), torch.randn_like(other)
        same.grad = other.grad.clone()
        optimiser.lr, adam.lr = 0.1 * share, 0.03 * share
        optimiser.step()
        adam.step()
        torch.testing.assert_close(other.detach(), same.detach())


def test_the_matrices_of_the_layers_are_orthogonalised():
    model = networks.model()
    training = config.Training(epochs=1, optimiser=config.Muon())
    found = build_optimiser(training, model)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    matrices, others = ([names[id(one)] for one in some] for some in (found.matrices, found.adam.parameters))
    assert matrices
    assert all(name.startswith("core.") and "weight" in name for name in matrices)
    assert {len(parameter.shape) for parameter in found.matrices} == {2}
    assert sorted([*matrices, *others]) == sorted(names.values())


def test_a_memory_is_restored():
    def begun():
        torch.manual_seed(1)
        w, other = weights((4, 3), (2,))
        return OrthogonalSteps(config.Muon(), [w, other], [w])

    def step(optimiser, seed):
        torch.manual_seed(seed)
        for parameter in optimiser.parameters:
            parameter.grad = torch.randn_like(parameter)
        optimiser.step()

    whole, part = begun(), begun()
    step(whole, 2)
    for parameter, value in zip(part.parameters, whole.parameters, strict=True):
        parameter.data.copy_(value)
    part.restore({name: tensor.clone() for name, tensor in whole.tensors().items()})
    step(whole, 3)
    step(part, 3)
    assert all(torch.equal(one, other) for one, other in zip(whole.parameters, part.parameters, strict=True))
