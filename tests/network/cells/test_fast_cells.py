"""LSTM, GRU and highway sequence functions against plain loops: values, final states and every gradient."""

from functools import partial
from unittest.mock import patch

import pytest
import torch
from torch import Tensor
from torch.nn.functional import linear

from elman.network.cells.cell import Weights
from elman.network.fast import gru, highway, lstm, policy
from elman.network.fast.precision import products_in
from support import networks
from support.pairwise import every_pair
from support.pretended import CUDA, Pretended

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-4}
SHAPES = [(1, 1, 2, 3), (1, 4, 3, 2), (6, 1, 3, 4), (7, 3, 5, 4), (9, 20, 24, 40)]


@pytest.fixture(autouse=True)
def small_products_too(monkeypatch):
    """They are oneDNN's, as large ones are."""
    monkeypatch.setattr(policy, "LEAST_ONEDNN", 0)


def loop_lstm(weights: Weights, xs: Tensor, state):
    h, c = state
    outputs = []
    for x in xs:
        z = linear(x, weights.weight_ih, weights.bias_ih) + linear(h, weights.weight_hh, weights.bias_hh)
        i, f, g, o = z.chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        outputs.append(h)
    return torch.stack(outputs), (h, c)


def loop_gru_after(weights: Weights, xs: Tensor, state):
    (h,) = state
    outputs = []
    for x in xs:
        x_r, x_z, x_n = linear(x, weights.weight_ih, weights.bias_ih).chunk(3, -1)
        h_r, h_z, h_n = linear(h, weights.weight_hh, weights.bias_hh).chunk(3, -1)
        z = torch.sigmoid(x_z + h_z)
        h = z * h + (1 - z) * torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)
        outputs.append(h)
    return torch.stack(outputs), (h,)


def loop_gru_before(weights: Weights, xs: Tensor, state):
    (h,) = state
    u_r, u_z, u_n = weights.weight_hh.chunk(3)
    zero = torch.zeros_like(weights.weight_hh[:, 0])
    b_r, b_z, b_n = (zero if weights.bias_hh is None else weights.bias_hh).chunk(3)
    outputs = []
    for x in xs:
        x_r, x_z, x_n = linear(x, weights.weight_ih, weights.bias_ih).chunk(3, -1)
        r, z = torch.sigmoid(x_r + linear(h, u_r, b_r)), torch.sigmoid(x_z + linear(h, u_z, b_z))
        h = z * h + (1 - z) * torch.tanh(x_n + linear(r * h, u_n, b_n))
        outputs.append(h)
    return torch.stack(outputs), (h,)


def loop_highway(weights: Weights, xs: Tensor, state):
    (s,) = state
    outputs = []
    for x in xs:
        z = linear(x, weights.weight_ih, weights.bias_ih) + linear(s, weights.weight_hh, weights.bias_hh)
        h, t = z.chunk(2, -1)
        s = torch.tanh(h) * torch.sigmoid(t) + s * (1 - torch.sigmoid(t))
        outputs.append(s)
    return torch.stack(outputs), (s,)


def hoisted_lstm(weights: Weights, xs: Tensor, state):
    with patch.object(policy, "library_lstm", return_value=None):
        return lstm.scan(weights, xs, state)


def hoisted_gru(weights: Weights, xs: Tensor, state):
    with patch.object(policy, "library_gru", return_value=None):
        return gru.scan(weights, xs, state)


PAIRS = {
    "lstm": (lstm.scan, loop_lstm, 4, 2),
    "hoisted lstm": (hoisted_lstm, loop_lstm, 4, 2),
    "gru, reset after": (gru.scan, loop_gru_after, 3, 1),
    "hoisted gru, reset after": (hoisted_gru, loop_gru_after, 3, 1),
    "gru, reset before": (partial(gru.scan, reset="before"), loop_gru_before, 3, 1),
    "highway": (partial(highway.scan, depth=1, coupled=True), loop_highway, 2, 1),
}


def problem(shape, gates, slots, biases, dtype=torch.float64):
    num_steps, num_rows, inputs, size = shape
    generator = torch.Generator().manual_seed(num_steps + 10 * biases)

    def normal(*shape):
        return (0.5 * torch.randn(shape, generator=generator, dtype=dtype)).requires_grad_()

    rows = gates * size
    bias = [normal(rows) if biases > index else None for index in range(2)]
    weights = Weights(normal(rows, inputs), normal(rows, size), *bias)
    return weights, normal(num_steps, num_rows, inputs), tuple(normal(num_rows, size) for _ in range(slots))


def results(function, weights, xs, state, *, final_only=False):
    outputs, last = function(weights, xs, state)
    generator = torch.Generator().manual_seed(1)
    used = last if final_only else (outputs, *last)
    loss = sum((t * torch.randn(t.shape, generator=generator, dtype=t.dtype)).sum() for t in used)
    leaves = (*weights.tensors().values(), xs, *state)
    return (outputs, *last, *torch.autograd.grad(loss, leaves))


def assert_same(found, expected, dtype):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@every_pair(name=PAIRS, shape=SHAPES, biases=[0, 1, 2], dtype=TOLERANCE)
def test_values_final_states_and_gradients_are_those_of_the_loop(name, shape, biases, dtype):
    fast, loop, gates, slots = PAIRS[name]
    arguments = problem(shape, gates, slots, biases, dtype)
    assert_same(results(fast, *arguments), results(loop, *arguments), dtype)


@pytest.mark.parametrize("name", PAIRS)
def test_gradient_through_the_final_state_alone(name):
    fast, loop, gates, slots = PAIRS[name]
    arguments = problem((5, 3, 2, 4), gates, slots, 2)
    found, expected = (results(f, *arguments, final_only=True) for f in (fast, loop))
    assert_same(found, expected, torch.float64)


@every_pair(name=PAIRS, dtype=TOLERANCE, num_steps=[1, 7])
def test_without_gradients_the_values_are_the_same(name, dtype, num_steps):
    fast, loop, gates, slots = PAIRS[name]
    weights, xs, state = problem((num_steps, 3, 5, 4), gates, slots, 2, dtype)
    before = [tensor.clone() for tensor in state]
    with torch.no_grad():
        found, expected = fast(weights, xs, state), loop(weights, xs, state)
    assert_same((found[0], *found[1]), (expected[0], *expected[1]), dtype)
    for tensor, copy in zip(state, before, strict=True):
        assert tensor.equal(copy)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_fast_cells_have_the_gradients_of_finite_differences(name):
    fast, _, gates, slots = PAIRS[name]
    weights, xs, state = problem((3, 2, 2, 3), gates, slots, 2)

    def function(w_x, w_h, b_x, b_h, xs, *state):
        outputs, last = fast(Weights(w_x, w_h, b_x, b_h), xs, state)
        return (outputs, *last)

    assert torch.autograd.gradcheck(function, (*weights.tensors().values(), xs, *state))


@pytest.mark.parametrize("name", PAIRS)
def test_strided_inputs_and_gradients(name):
    """Inputs cut from larger tensors, a gradient that is one expanded number, and a DropConnect mask."""
    fast, loop, gates, slots = PAIRS[name]
    dtype = torch.float32
    weights, xs, state = problem((5, 6, 8, 8), gates, slots, 1, dtype)
    mask = (torch.rand(weights.weight_hh.shape, generator=torch.Generator().manual_seed(0)) > 0.5) * 2.0

    def gradients(function):
        masked = weights.replaced(weight_ih=weights.weight_ih[:, ::2], weight_hh=weights.weight_hh * mask)
        outputs, _ = function(masked, xs.transpose(0, 1)[:, :5, ::2], tuple(s[[0] * 5] for s in state))
        return torch.autograd.grad(outputs.sum(), (*weights.tensors().values(), xs, *state))

    assert_same(gradients(fast), gradients(loop), dtype)


@pytest.mark.parametrize("name", PAIRS)
def test_backward_may_be_called_twice(name):
    fast, _, gates, slots = PAIRS[name]
    weights, xs, state = problem((4, 2, 3, 4), gates, slots, 2)
    loss = fast(weights, xs, state)[0].square().sum()
    first = torch.autograd.grad(loss, (weights.weight_hh, xs), retain_graph=True)
    for one, other in zip(first, torch.autograd.grad(loss, (weights.weight_hh, xs)), strict=True):
        assert one.equal(other)


@pytest.mark.parametrize("name", PAIRS)
def test_any_split_into_windows_gives_the_same_outputs(name):
    fast, _, gates, slots = PAIRS[name]
    weights, xs, state = problem((9, 2, 3, 4), gates, slots, 2)
    whole, _ = fast(weights, xs, state)
    pieces = []
    for window in xs.split([1, 5, 3]):
        outputs, state = fast(weights, window, state)
        pieces.append(outputs)
    torch.testing.assert_close(torch.cat(pieces), whole)


@pytest.mark.parametrize("name", PAIRS)
def test_without_onednn_nothing_changes(name):
    fast, loop, gates, slots = PAIRS[name]
    arguments = problem((6, 3, 5, 4), gates, slots, 2, torch.float32)
    expected = results(loop, *arguments)
    with torch.backends.mkldnn.flags(enabled=False):
        assert_same(results(fast, *arguments), expected, torch.float32)


def test_one_step_never_goes_to_the_library():
    assert not policy.library_lstm(torch.zeros(1, 1, 650), 650)
    assert not policy.library_lstm(torch.zeros(70, 20, 8, dtype=torch.float64), 8)
    assert not policy.library_lstm(torch.zeros(70, 20, 1150), 1150)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((1, 1, 3, 650), True), ((9, 20, 3, 250), True), ((9, 20, 3, 251), False), ((9, 1, 3, 513), False)],
)
def test_the_library_computes_small_steps_of_a_gru_without_gradients(shape, expected):
    steps, rows, inputs, size = shape
    xs = torch.zeros(steps, rows, inputs)
    assert not policy.library_gru(xs, size), "with gradients"
    with torch.no_grad():
        assert (policy.library_gru(xs, size) is not None) == expected
        with products_in("bf16"):
            assert not policy.library_gru(xs, size), "its products are float32"


@pytest.mark.parametrize("name", ["lstm", "gru-after"])
def test_parameters_on_a_gpu_are_one_block(name):
    """As cuDNN needs them: both matrices, then both biases, one after the other; with the gradients of all."""
    own = list(networks.weights(networks.CELLS[name]).tensors().values())
    with Pretended():
        given = Weights(*(part.to(CUDA) for part in own))
        found = lstm.library_parameters(given, torch.float32)
        assert all(part.device == CUDA for part in found)
        start, size = found[0].data_ptr(), found[0].element_size()
        total = torch.stack([(part * part).sum() for part in found]).sum()
        total.backward()
    for part, one in zip(found, own, strict=True):
        assert (part.data_ptr(), part.dtype) == (start, torch.float32)
        torch.testing.assert_close(part.double(), one, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(one.grad, 2 * one.detach(), rtol=1e-6, atol=1e-6)
        start += size * part.numel()


@pytest.mark.parametrize("name", networks.CELLS)
def test_a_gradient_does_not_depend_on_which_others_are_wanted(name):
    """Of a window: inputs, first state and every array, each alone and all together."""
    cell, xs = networks.CELLS[name], torch.randn(5, 2, 3, dtype=torch.float64)
    w, state = networks.weights(cell), networks.state(cell)
    arrays = w.tensors()
    given = [xs, *state, *arrays.values()]

    def gradients(wanted):
        leaves = [part.detach().clone().requires_grad_(place in wanted) for place, part in enumerate(given)]
        inputs, *rest = leaves
        parts, others = tuple(rest[: len(state)]), rest[len(state) :]
        outputs, after = cell.scan(w.replaced(**dict(zip(arrays, others, strict=True))), inputs, parts)
        loss = outputs.sin().sum() + sum(part.sin().sum() for part in after)
        found = torch.autograd.grad(
            loss, [leaves[place] for place in wanted], allow_unused=True, materialize_grads=True
        )
        return dict(zip(wanted, found, strict=True))

    together = gradients(range(len(given)))
    for place, wanted in together.items():
        if wanted.any():
            torch.testing.assert_close(gradients([place])[place], wanted)
