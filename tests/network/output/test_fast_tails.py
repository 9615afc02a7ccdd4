"""The likelihood within groups against the plain formula, and its cost: no matrix of all rows and all symbols."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import linear
from torch.utils._python_dispatch import TorchDispatchMode

from elman import config
from elman.network.encoders.encoder import build_encoder
from elman.network.fast import tails
from elman.network.output.activation import log_g
from elman.network.output.choice import build_choice, zipf
from support.pairwise import every_pair
from support.parameters import OUTPUT_FUNCTIONS

MEMBERS = (slice(2, 5), torch.tensor([7, 0, 1, 9]), slice(5, 6))
COUNTS = (3, 4, 2)
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5}


def plain(h, weight, bias, y, activation):
    rows = iter(zip(h, y, strict=True))
    found = []
    for members, count in zip(MEMBERS, COUNTS, strict=True):
        for _ in range(count):
            x, place = next(rows)
            scores = log_g(linear(x, weight[members], None if bias is None else bias[members]), activation)
            found.append(scores.log_softmax(-1)[place])
    return torch.stack(found)


def problem(dtype=torch.float64, bias=True, scale=1.0):
    h, weight = torch.randn(9, 3, dtype=dtype), scale * torch.randn(10, 3, dtype=dtype)
    leaves = [h, weight, torch.randn(10, dtype=dtype) if bias else None]
    y = torch.tensor([0, 2, 1, 3, 3, 0, 1, 0, 0])
    return [leaf if leaf is None else leaf.requires_grad_() for leaf in leaves], y


@every_pair(activation=OUTPUT_FUNCTIONS, dtype=TOLERANCE, bias=[True, False], scale=[1.0, 1e4])
def test_values_and_gradients_are_those_of_the_plain_formula(activation, dtype, bias, scale):
    leaves, y = problem(dtype, bias, scale)
    upstream = torch.rand(9, dtype=dtype)
    given = [leaf for leaf in leaves if leaf is not None]
    expected = plain(*leaves, y, activation)
    found = tails.log_prob(*leaves, y, activation, MEMBERS, COUNTS)
    tolerance = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype] * scale}
    torch.testing.assert_close(found, expected, **tolerance)
    ours, theirs = (torch.autograd.grad((upstream * value).sum(), given) for value in (found, expected))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=100 * TOLERANCE[dtype], atol=10 * TOLERANCE[dtype] * scale)
    with torch.no_grad():
        torch.testing.assert_close(tails.log_prob(*leaves, y, activation, MEMBERS, COUNTS), found.detach())


@pytest.mark.slow
@pytest.mark.parametrize("activation", OUTPUT_FUNCTIONS)
def test_fast_tails_have_the_gradients_of_finite_differences(activation):
    leaves, y = problem()
    assert torch.autograd.gradcheck(lambda *x: tails.log_prob(*x, y, activation, MEMBERS, COUNTS), leaves)


def test_second_derivative_is_refused():
    leaves, y = problem()
    total = tails.log_prob(*leaves, y, "softmax", MEMBERS, COUNTS).sum()
    with pytest.raises(RuntimeError, match="first derivatives only; set fused = False"):
        torch.autograd.grad(total, leaves[0], create_graph=True)


class LargestTensor(TorchDispatchMode):
    """Watches the results of every operation."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(tensor, Tensor) and not tensor.is_mkldnn:
                self.elements = max(self.elements, tensor.numel())
        return result


@pytest.mark.parametrize(
    "choice", [config.Adaptive(cutoffs=(100, 1000)), config.Tree(), config.Tree(assignment="random")]
)
@pytest.mark.slow
@pytest.mark.parametrize("components", [1, 3])
def test_no_tensor_is_of_the_order_of_positions_times_symbols(choice, components):
    """Forward and backward, in positions N, components K and symbols V: the largest is a gradient, V D."""
    num_words, positions, width = 4000, 200, 8
    made = build_choice(
        config.Output(choice=choice), width, build_encoder(config.Lookup(size=2), num_words, locked=True), num_words
    )
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    context = torch.randn(positions, components, width, requires_grad=True)
    target = torch.multinomial(zipf(num_words), positions, replacement=True)
    with LargestTensor() as seen:
        total, _ = made.mixture_nll(context, torch.zeros(positions, components), target, torch.ones(positions))
        total.backward()
    assert seen.elements < positions * components * num_words / 5
