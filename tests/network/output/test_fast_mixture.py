"""The fused mixture likelihood against the plain formula over the whole matrix of its options."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import linear
from torch.utils._python_dispatch import TorchDispatchMode

from elman.network.fast import mixture, mixture_products
from elman.network.output.activation import ACTIVATIONS, log_g
from support.pairwise import every_pair
from support.parameters import OUTPUT_FUNCTIONS

TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5}


def plain(context, log_prior, weight, bias, target, position_weight, activation):
    scores = log_g(linear(context, weight, bias), activation)
    log_prob = torch.stack([row[:, y] for row, y in zip(scores - scores.logsumexp(-1, True), target, strict=True)])
    nll = -torch.logsumexp(log_prob if log_prior is None else log_prior + log_prob, 1)
    return (position_weight * nll).sum(), nll


def problem(n=7, k=3, d=5, v=11, *, dtype=torch.float64, bias=True, prior=True, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=dtype)

    return [
        normal(n, k, d).requires_grad_(),
        normal(n, k).log_softmax(-1).requires_grad_() if prior else None,
        normal(v, d).requires_grad_(),
        normal(v).requires_grad_() if bias else None,
        torch.randint(v, (n,), generator=generator),
        torch.rand(n, generator=generator, dtype=dtype),
    ]


def gradients(function, arguments, activation):
    total, each = function(*arguments, activation)
    leaves = [a for a in arguments if a is not None and a.requires_grad]
    return total, each, torch.autograd.grad(1.7 * total, leaves)


CHUNKS = [1, 4 * 11 * 8, 6 * 11 * 8, 1 << 20]
"""Bytes of chunks of one position, of sizes that divide N or do not, and of all positions."""


@pytest.fixture
def chunk(request, monkeypatch):
    monkeypatch.setattr(mixture_products, "CHUNK_BYTES", {"cpu": request.param})
    monkeypatch.setattr(mixture_products, "CHUNK_ROWS", 1)
    monkeypatch.setattr(mixture_products, "BLOCK_BYTES", min(request.param, 3 * 5 * 8))


def in_chunks(**options):
    """Every pair of the options and of sizes of chunks."""
    return every_pair(**options, chunk=CHUNKS).with_args(indirect=["chunk"])


@in_chunks(
    activation=OUTPUT_FUNCTIONS,
    dtype=TOLERANCE,
    sizes=[(7, 1, True, False), (7, 1, False, True), (7, 3, True, True), (6, 2, False, True), (1, 4, True, True)],
)
def test_values_and_gradients_are_those_of_the_plain_formula(activation, dtype, sizes, chunk):
    n, k, bias, prior = sizes
    arguments = problem(n, k, dtype=dtype, bias=bias, prior=prior)
    total, each, expected = gradients(plain, arguments, activation)
    fused_total, fused_each, found = gradients(mixture.nll, arguments, activation)
    tolerance = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    torch.testing.assert_close(fused_total, total, **tolerance)
    torch.testing.assert_close(fused_each, each.detach(), **tolerance)
    assert not fused_each.requires_grad
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, **tolerance)


@in_chunks(activation=OUTPUT_FUNCTIONS)
def test_log_prob_and_nll_without_gradients_are_the_same_values(activation, chunk):
    arguments = problem()
    total, each = plain(*arguments, activation)
    with torch.no_grad():
        fused_total, fused_each = mixture.nll(*arguments, activation)
    log_prob = mixture.log_prob(*arguments[:5], activation)
    torch.testing.assert_close(fused_total, total.detach())
    torch.testing.assert_close(fused_each, each.detach())
    torch.testing.assert_close(log_prob, -each.detach())
    assert not log_prob.requires_grad


@pytest.mark.slow
@pytest.mark.parametrize("activation", OUTPUT_FUNCTIONS)
def test_the_fast_mixture_has_the_gradients_of_finite_differences(activation):
    *leaves, target, position_weight = problem(n=3, k=2, d=3, v=4)

    def function(*inputs: Tensor) -> Tensor:
        return mixture.nll(*inputs, target, position_weight, activation)[0]

    assert torch.autograd.gradcheck(function, leaves)


@every_pair(activation=OUTPUT_FUNCTIONS, dtype=TOLERANCE, offset=[-1e4, 0.0, 1e4])
def test_extreme_logits_are_as_exact_as_the_plain_formula(activation, dtype, offset):
    arguments = problem(n=5, k=2, v=6, dtype=dtype)
    with torch.no_grad():
        arguments[3].copy_(torch.linspace(-1e4, 1e4, 6) if offset == 0 else torch.full((6,), offset))
    total, each, expected = gradients(plain, arguments, activation)
    fused_total, fused_each, found = gradients(mixture.nll, arguments, activation)
    assert fused_each.isfinite().all()
    spacing = 3e4 * torch.finfo(dtype).eps  # of the scores themselves
    tolerance = {"rtol": 10 * spacing, "atol": 10 * spacing}
    torch.testing.assert_close(fused_total, total, **tolerance)
    torch.testing.assert_close(fused_each, each.detach(), **tolerance)
    for one, other in zip(found, expected, strict=True):
        assert one.isfinite().all()
        torch.testing.assert_close(one, other, **tolerance)


def test_tied_weight_gets_both_gradients():
    context, log_prior, weight, bias, target, position_weight = problem(d=5)

    def loss(function):
        h = torch.tanh(weight[target].unsqueeze(1) + context.detach())
        return function(h, log_prior, weight, bias, target, position_weight, "softmax")[0]

    expected, found = (torch.autograd.grad(loss(f), weight)[0] for f in (plain, mixture.nll))
    torch.testing.assert_close(found, expected)


def test_second_derivative_is_refused():
    arguments = problem()
    total, _ = mixture.nll(*arguments, "softmax")
    with pytest.raises(RuntimeError, match="first derivatives only; set fused = False"):
        torch.autograd.grad(total, arguments[0], create_graph=True)


def test_backward_may_be_called_twice():
    arguments = problem()
    total, _ = mixture.nll(*arguments, "softmax")
    first = torch.autograd.grad(total, arguments[2], retain_graph=True)[0]
    torch.testing.assert_close(torch.autograd.grad(total, arguments[2])[0], first, rtol=0, atol=0)


def test_bfloat16_autocast():
    arguments = problem(d=64, v=97, dtype=torch.float32)
    total, _, expected = gradients(plain, arguments, "softmax")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        fused, _, found = gradients(lambda context, *rest: mixture.nll(context.bfloat16(), *rest), arguments, "softmax")
    assert fused.dtype == torch.float32
    torch.testing.assert_close(fused, total, rtol=2e-2, atol=2e-2)
    for one, other in zip(found, expected, strict=True):
        assert (one - other).norm() < 0.05 * other.norm() + 1e-6


class LargestTensor(TorchDispatchMode):
    """Watches every operation's results."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(tensor, Tensor) and not tensor.is_mkldnn:
                self.elements = max(self.elements, tensor.untyped_storage().nbytes() // tensor.element_size())
        return result


@pytest.mark.parametrize("activation", ["softmax", "sigsoftmax"])
def test_no_tensor_is_of_the_order_of_positions_times_symbols(activation, monkeypatch):
    monkeypatch.setattr(mixture_products, "CHUNK_BYTES", {"cpu": 4 * 9 * 500})
    arguments = problem(n=60, k=3, d=8, v=500, dtype=torch.float32)
    with LargestTensor() as fused:
        mixture.nll(*arguments, activation)[0].backward()
    with LargestTensor() as direct:
        plain(*arguments, activation)[0].backward()
    assert direct.elements >= 60 * 3 * 500
    assert fused.elements <= 9 * 500


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_sigsoftmax_of_rows_far_below_zero(dtype):
    """Where every sigmoid of a row underflows, the quick product form gives way to the log domain."""
    arguments = problem(n=4, k=2, dtype=dtype)
    with torch.no_grad():
        arguments[3].sub_(900.0)
    _, each, expected = gradients(plain, arguments, "sigsoftmax")
    _, fused, found = gradients(mixture.nll, arguments, "sigsoftmax")
    torch.testing.assert_close(fused, each.detach(), rtol=1e-3, atol=1e-3)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_has_the_gradients_of_the_plain_formula(activation):
    """A slope that is not the derivative of log g would leave the values right and the gradients wrong."""
    arguments = problem()
    *_, expected = gradients(plain, arguments, activation)
    *_, found = gradients(mixture.nll, arguments, activation)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
