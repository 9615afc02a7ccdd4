"""Matrix products with a factor [O, I], as a linear layer stores it, laid out for the processor.

For float32 on the CPU they are oneDNN's, which run at the full vector width of the machine for narrow and for wide
factors; the BLAS behind `torch.mm` does not on every processor (`benchmarks/recurrent.py` prints both). Otherwise,
inside `torch.backends.mkldnn.flags(enabled=False)`, and where little is computed, since a call costs less, they are
`torch.addmm`. Only `linear` is differentiable: the others are for kernels that form their own gradients.

Inside `precision.products_in("bf16")` the factors of large float32 products are rounded to bf16, and inside "int8"
the factors of products with a parameter to eight bits (`fast/int8.py`), which have no gradient; every result is
float32.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from elman.network.fast import policy, precision

Backward = Callable[..., tuple[Tensor | None, ...]]

State: TypeAlias = tuple[Tensor, ...]
"""Tensors [B, H], the first of which is the output h."""


class Arrays:
    """The arrays of a layer; the products with its inputs are float32 where they are `exact`."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None
    mask: Tensor | None
    exact: bool


def rounded(factor: Tensor, rows: int, uses: int = 1) -> Tensor:
    """The factor [O, I] of products with `rows` rows, rounded once for all of them where they are computed in bf16."""
    return factor.to(torch.bfloat16) if policy.worth_rounding(factor, rows, uses) else factor


def pack(factor: Tensor, rows: int, uses: int) -> Tensor:
    """Lay out factor [O, I], any strides, for `uses` products with `rows` rows each."""
    if policy.in_int8(factor):
        return factor  # it is laid out once for all products
    factor = rounded(factor, rows, uses)
    if uses < policy.PACKING_USES or not (policy.uses_onednn(factor) and policy.is_large(factor, rows)):
        return factor
    return torch.ops.mkldnn._reorder_linear_weight(factor, rows)


def _dense(factor: Tensor) -> Tensor:
    # oneDNN accepts other strides too, but is then a thousand times slower.
    if factor.is_mkldnn or factor.is_contiguous() or factor.t().is_contiguous():
        return factor
    return factor.contiguous()


def _multiply_in_bf16(x: Tensor, factor: Tensor) -> Tensor:
    """Return x factor^T [N, O], rounded to bf16 on a CPU, where products of bf16 factors have no other result."""
    if x.device.type == "cuda":
        return torch.mm(x.to(torch.bfloat16), factor.to(torch.bfloat16).t(), out_dtype=torch.float32)
    return multiply_in_bf16(x, factor).float()


def _multiply_in_int8(x: Tensor, factor: Tensor, bias: Tensor | None) -> Tensor:
    from elman.network.fast import int8

    return int8.multiply(x, factor, bias)


def multiply_in_bf16(x: Tensor, factor: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x factor^T + bias, rounded to bf16 at the end, for x [N, I], bias [O] in float32, factor [O, I]."""
    x, factor = x.to(torch.bfloat16), factor.to(torch.bfloat16)
    if policy.uses_onednn(x):
        return torch.ops.mkldnn._linear_pointwise(x, _dense(factor), bias, "none", [], "")
    product = torch.mm(x, factor.t())
    return product if bias is None else product.add_(bias)


def multiply(x: Tensor, factor: Tensor, bias: Tensor | None = None, *, exact: bool = False) -> Tensor:
    """Return x factor^T + bias, [N, O], for x [N, I], bias [O], factor [O, I], any strides, packed or rounded.

    An `exact` product is float32 where others are bf16.
    """
    if policy.in_int8(factor):
        return _multiply_in_int8(x, factor, bias)
    if not exact and policy.in_bf16(x, factor):
        product = _multiply_in_bf16(x, factor)
        return product if bias is None else product.add_(bias)
    if policy.by_onednn(x, factor):
        dense_bias = None if bias is None else bias.contiguous()
        return torch.ops.mkldnn._linear_pointwise(x, _dense(factor), dense_bias, "none", [], "")
    return functional.linear(x, factor, bias)


def multiply_add(x: Tensor, factor: Tensor, other: Tensor) -> Tensor:
    """Return x factor^T + other, [N, O]; arguments as in `multiply`, and other [N, O]."""
    if policy.in_int8(factor):
        return _multiply_in_int8(x, factor, None).add_(other)
    if policy.in_bf16(x, factor):
        return _multiply_in_bf16(x, factor).add_(other)
    if policy.by_onednn(x, factor):
        return torch.ops.mkldnn._linear_pointwise.binary(x, other.contiguous(), _dense(factor), None, "add")
    return torch.addmm(other, x, factor.t())


def multiply_transposed(d: Tensor, x: Tensor) -> Tensor:
    """Return d^T x, [O, I], for d [N, O] and x [N, I]: the gradient of a factor. The less of them is laid out again."""
    if policy.lays_out_second(d, x):
        return multiply(x.t(), d.t()).t()
    return multiply(d.t(), x.t())


def sum_biases(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """Return the sum of the biases that are not None, [O], or None."""
    if one is None or other is None:
        return other if one is None else one
    return one + other


_TWICE: ContextVar[bool] = ContextVar("linear is differentiated twice", default=False)


@contextmanager
def differentiable_twice() -> Iterator[None]:
    """Within the block `linear` is torch's own, which has derivatives of any order, in float32."""
    before = _TWICE.set(True)
    try:
        yield
    finally:
        _TWICE.reset(before)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, exact: bool = False) -> Tensor:
    """Return x weight^T + bias, [*, O], for x [*, I], weight [O, I] and bias [O] or None.

    As `torch.nn.functional.linear`, but faster on CPUs, where it has first derivatives only, as in bf16 everywhere. An
    `exact` product is float32 where others are not.
    """
    if policy.plain(x):
        return functional.linear(x, weight, bias)
    if exact and precision.chosen() != "float32":
        with precision.products_in("float32"):
            return linear(x, weight, bias)
    rows = x.reshape(-1, x.shape[-1])
    own = policy.by_onednn(rows, weight) or policy.in_bf16(rows, weight) or policy.in_int8(weight)
    if not own or _TWICE.get() or torch.is_autocast_enabled(x.device.type):
        return functional.linear(x, weight, bias)
    return _Linear.apply(rows, weight, bias).view(*x.shape[:-1], -1)  # type: ignore[no-untyped-call]


def keep(ctx: Any, *tensors: Tensor | None) -> None:
    """Save tensors for a backward pass that is `differentiable_once`, and the precision of its products."""
    ctx.save_for_backward(*tensors)
    ctx.precision = precision.chosen()


def without_autocast(like: Tensor) -> torch.autocast:
    """No autocast within the block, on the device of a tensor."""
    return torch.autocast("cpu" if like.is_meta else like.device.type, enabled=False)


def differentiable_once(backward: Backward) -> Backward:
    """Decorate a backward pass, after `keep`, to refuse `create_graph=True` by a RuntimeError.

    Some of our backward passes would otherwise leave terms out of second derivatives. torch's `once_differentiable`
    detects only a dependence on the incoming gradient: if that is a constant, as for a loss, the gradients count as
    constants too.
    """

    @wraps(backward)
    def checked(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "this fast form has first derivatives only; set fused = False of the layer or the output"
            )
        with precision.products_in(ctx.precision):
            return backward(ctx, *gradients)

    return checked


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        keep(ctx, x, weight)
        return multiply(x, weight, bias)

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, d_y: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        return (
            multiply(d_y, weight.t()) if needs_x else None,
            multiply(d_y.t(), x.t()) if needs_weight else None,
            d_y.sum(0) if needs_bias else None,
        )
