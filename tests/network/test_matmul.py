"""Products against `@`, for factors of any strides, packed or not."""

import pytest
import torch
from torch.nn import functional

from elman.network.fast import matmul, policy, precision
from support.pairwise import every_pair


@pytest.fixture(autouse=True, params=["oneDNN", "torch"])
def library(request, monkeypatch):
    """Products of every size by either."""
    monkeypatch.setattr(policy, "LEAST_ONEDNN", 0 if request.param == "oneDNN" else 1 << 60)
    return request.param


def factor(layout: str, dtype: torch.dtype) -> torch.Tensor:
    base = torch.randn(12, 20, generator=torch.Generator().manual_seed(0), dtype=dtype)
    match layout:
        case "rows":
            return base[:, :7].contiguous()
        case "columns":
            return base[:, :7].t().contiguous().t()
        case "cut":
            return base[:, 3:10]
        case _:
            return base[:, 1:14:2]


@every_pair(
    dtype=[torch.float32, torch.float64], layout=["rows", "columns", "cut", "steps"], uses=[1, 100], num_rows=[1, 5]
)
def test_packed_products_are_the_plain_ones(dtype, layout, uses, num_rows):
    w = factor(layout, dtype)
    x, other, bias = (
        torch.randn(num_rows, 14, dtype=dtype)[:, ::2],
        torch.randn(num_rows, 12, dtype=dtype),
        w[:, 0],
    )
    packed = matmul.pack(w, num_rows, uses)
    torch.testing.assert_close(matmul.multiply(x, packed), x @ w.t())
    torch.testing.assert_close(matmul.multiply(x, packed, bias), x @ w.t() + bias)
    torch.testing.assert_close(matmul.multiply_add(x, packed, other), x @ w.t() + other)
    torch.testing.assert_close(matmul.multiply_add(x, packed, other[:1].expand(num_rows, 12)), x @ w.t() + other[:1])


def test_packing_follows_the_library_the_switch_and_the_uses(library):
    w = torch.randn(4, 4)
    assert matmul.pack(w, 1, 1) is w
    assert matmul.pack(w, 1, 100).is_mkldnn == (library == "oneDNN" and policy.uses_onednn(w))
    with torch.backends.mkldnn.flags(enabled=False):
        assert matmul.pack(w, 1, 100) is w
    assert matmul.pack(w.double(), 1, 100).dtype == torch.float64


def test_sum_biases():
    one = torch.ones(2)
    assert matmul.sum_biases(None, None) is None
    assert matmul.sum_biases(one, None) is one
    assert matmul.sum_biases(None, one) is one
    assert matmul.sum_biases(one, one).tolist() == [2, 2]


@every_pair(dtype=[torch.float32, torch.float64], shape=[(5,), (3, 2, 5), (1, 5)], bias=[True, False])
def test_linear_and_its_gradients_are_those_of_torch(dtype, shape, bias):
    x, weight = (torch.randn(s, dtype=dtype, requires_grad=True) for s in (shape, (4, 5)))
    leaves = (x, weight, torch.randn(4, dtype=dtype, requires_grad=True)) if bias else (x, weight)
    found, expected = matmul.linear(*leaves), functional.linear(*leaves)
    torch.testing.assert_close(found, expected)
    gradient = torch.randn_like(expected)
    for one, other in zip(
        torch.autograd.grad(found, leaves, gradient),
        torch.autograd.grad(expected, leaves, gradient),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.skipif(not policy.uses_onednn(torch.ones(1)), reason="torch without oneDNN")
def test_large_products_are_onednns_and_small_ones_torchs(monkeypatch):
    monkeypatch.undo()
    rows, w = policy.LEAST_ONEDNN // 2**14, torch.randn(128, 128)
    assert matmul.pack(w, rows - 1, 100) is w
    assert matmul.pack(w, rows, 100).is_mkldnn


@pytest.mark.parametrize("kind", ["float32", "bf16"])
@pytest.mark.parametrize(("rows", "outputs", "inputs"), [(1, 2, 3), (40, 12, 5), (9, 12, 30), (300, 64, 16)])
def test_the_gradient_of_a_factor_is_one_product_whichever_is_laid_out(rows, outputs, inputs, kind, monkeypatch):
    monkeypatch.setattr(policy, "LEAST_MULTIPLY_ADDS", 0)
    monkeypatch.setattr(policy, "LEAST_ROWS", 1)
    d, x = torch.randn(rows, outputs), torch.randn(rows, inputs)
    found = []
    with precision.products_in(kind):
        for second in (False, True):
            monkeypatch.setattr(policy, "lays_out_second", lambda *_, second=second: second)
            found.append(matmul.multiply_transposed(d, x))
    torch.testing.assert_close(found[0], found[1])
    torch.testing.assert_close(found[0], d.t() @ x, rtol=0.02, atol=0.1 if kind == "bf16" else 1e-4)


def test_linear_has_second_derivatives_where_they_are_asked_for(library):
    x, w, bias = (torch.randn(size, requires_grad=True) for size in ((5, 4), (3, 4), (3,)))
    found = []
    for form in (matmul.linear, functional.linear):
        with matmul.differentiable_twice():
            (first,) = torch.autograd.grad(form(x, w, bias).tanh().sum(), x, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), (x, w, bias)))
    torch.testing.assert_close(found[0], found[1])
    if library == "oneDNN" and policy.uses_onednn(x):
        with pytest.raises(RuntimeError, match="first derivatives only"):
            torch.autograd.grad(matmul.linear(x, w, bias).tanh().sum(), x, create_graph=True)


@pytest.mark.parametrize("library", [True, False])
def test_products_in_bf16_without_the_library_add_the_bias_too(library, monkeypatch):
    monkeypatch.setattr(matmul.policy, "uses_onednn", lambda x, known=policy.uses_onednn: library and known(x))
    x, factor, bias = torch.randn(5, 16), torch.randn(7, 16), torch.randn(7)
    for one in (None, bias):
        found = matmul.multiply_in_bf16(x, factor, one)
        wanted = x.bfloat16().double() @ factor.bfloat16().double().t() + (0 if one is None else one)
        torch.testing.assert_close(found.double(), wanted, rtol=0.02, atol=0.05)
