"""The fast sLSTM against the plain loop: values, states and every gradient, also of what the last state depends on."""

import pytest
import torch

from elman import config
from elman.network.cells.cell import Weights, unroll
from support.pairwise import every_pair

KINDS = [(1, "sigmoid"), (2, "sigmoid"), (2, "exponential")]
TOLERANCE = {torch.float64: 1e-11, torch.float32: 2e-4}


def problem(heads, biases, dtype, begun):
    """Three units a head, five rows; where rows have not begun, n, c and m are 0."""
    generator = torch.Generator().manual_seed(heads + 10 * biases)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=dtype)

    size = 3 * heads
    bias = [normal(4 * size) if biases > index else None for index in range(2)]
    weights = Weights(normal(4 * size, 4), normal(4 * size, 3), *bias)
    started = torch.tensor([begun, begun, True, False, begun]).unsqueeze(1).to(dtype)
    h, c, m = (normal(5, size) * started for _ in range(3))
    n = (normal(5, size).abs() + 0.1) * started
    leaves = [
        weights.weight_ih,
        weights.weight_hh,
        *filter(lambda one: one is not None, bias),
        normal(7, 5, 4),
        h,
        c,
        n,
        m,
    ]
    return weights, [leaf.requires_grad_() for leaf in leaves]


def outcome(sequence, weights, leaves, used):
    xs, *state = leaves[-5:]
    outputs, after = sequence(weights, xs, tuple(state))
    every = (outputs, *after)
    generator = torch.Generator().manual_seed(1)
    factors = [torch.randn(one.shape, generator=generator, dtype=one.dtype) for one in every]
    loss = sum((every[index] * factors[index]).sum() for index in used)
    return [*every, *torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)]


@every_pair(
    kind=KINDS, biases=[0, 1, 2], dtype=TOLERANCE, begun=[True, False], used=[(0,), (0, 1, 2, 3, 4), (2,), (3,), (4,)]
)
def test_values_states_and_gradients_are_those_of_the_loop(kind, biases, dtype, begun, used):
    heads, forget = kind
    cell = config.SLSTM(heads=heads, forget=forget)
    weights, leaves = problem(heads, biases, dtype, begun)
    found = outcome(cell.scan, weights, leaves, used)
    expected = outcome(lambda *given: unroll(cell.step, *given), weights, leaves, used)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_it_has_first_derivatives_only():
    weights, leaves = problem(2, 2, torch.float64, begun=True)
    xs, *state = leaves[-5:]
    outputs, _ = config.SLSTM(heads=2).scan(weights, xs, tuple(state))
    with pytest.raises(RuntimeError, match="first derivatives only"):
        torch.autograd.grad(outputs.sum(), xs, create_graph=True)


def test_a_gradient_of_one_number_and_a_second_backward_pass():
    cell = config.SLSTM(heads=2)
    weights, leaves = problem(2, 2, torch.float64, begun=True)
    xs, state = leaves[-5].transpose(0, 1)[:, :3], tuple(part[:3] for part in leaves[-4:])
    loss = cell.scan(weights, xs, state)[0].sum()
    first = torch.autograd.grad(loss, leaves, retain_graph=True)
    assert all(one.equal(other) for one, other in zip(first, torch.autograd.grad(loss, leaves), strict=True))
    expected = torch.autograd.grad(unroll(cell.step, weights, xs, state)[0].sum(), leaves)
    for one, other in zip(first, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_any_split_into_windows_gives_the_same_outputs():
    cell = config.SLSTM(heads=2)
    weights, leaves = problem(2, 2, torch.float64, begun=False)
    xs, *state = leaves[-5:]
    whole, _ = cell.scan(weights, xs, tuple(state))
    pieces = []
    for window in xs.split([1, 4, 2]):
        outputs, state = cell.scan(weights, window, tuple(state))
        pieces.append(outputs)
    torch.testing.assert_close(torch.cat(pieces), whole)
