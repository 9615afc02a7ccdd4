"""Matrix products with a factor [O, I], as a linear layer stores it, laid out for the processor.

For float32 on the CPU they are oneDNN's, which run at the full vector width of the machine for narrow and for wide
factors; the BLAS behind `torch.mm` does not on every processor (`benchmarks/recurrent.py` prints both). Otherwise,
inside `torch.backends.mkldnn.flags(enabled=False)`, and where little is computed, since a call costs less, they are
`torch.addmm`. Only `linear` is differentiable: the others are for kernels that form their own gradients.

Inside `precision.products_in("bf16")` the factors of large float32 products are rounded to bf16, inside that of "int8"
those of products with a parameter to eight bits (`network/int8.py`), which have no gradient; every result is float32.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elman.network import int8, precision

Backward = Callable[..., tuple[Tensor | None, ...]]

PACKING_USES = 4
"""A factor used fewer times is not laid out again, which costs about as much as reading it three times."""

LEAST_ONEDNN = 1 << 21
"""Multiply-adds of a float32 product from which it is oneDNN's. Below, torch's own takes from a quarter of the time
(one row of 64) to about the same (ten rows of 200; `benchmarks/recurrent.py small`)."""

LEAST_MULTIPLY_ADDS = 1 << 20
"""Smaller products stay float32: there, rounding the factors takes as long as is gained (`benchmarks/precision.py`)."""

LEAST_ROWS = 16
"""So do products in which a factor meets fewer rows altogether: rounding it then costs more than multiplying by it."""


@cache
def _onednn_works(dtype: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        factor = torch.ops.mkldnn._reorder_linear_weight(torch.eye(2, dtype=dtype), 1)
        product = torch.ops.mkldnn._linear_pointwise(torch.ones(1, 2, dtype=dtype), factor, None, "none", [], "")
    except (AttributeError, RuntimeError):
        return False
    return bool(product.eq(1).all())


def uses_onednn(like: Tensor) -> bool:
    """Whether oneDNN computes the products of tensors of this device and type."""
    if like.device.type != "cpu" or like.dtype not in (torch.float32, torch.bfloat16):
        return False
    return bool(torch.backends.mkldnn.enabled) and _onednn_works(like.dtype)


def _by_onednn(x: Tensor, factor: Tensor) -> bool:
    """Whether x factor^T is oneDNN's: also of a factor that is laid out for it."""
    return uses_onednn(x) and (factor.is_mkldnn or is_large(factor, x.shape[0]))


def is_large(factor: Tensor, rows: int) -> bool:
    """Whether products of this factor and so many rows are large enough for oneDNN, where there is a choice."""
    return factor.dtype != torch.float32 or rows * factor.numel() >= LEAST_ONEDNN


def worth_rounding(factor: Tensor, rows: int, uses: int = 1) -> bool:
    """Whether a factor is rounded to bf16 for `uses` products with `rows` rows each."""
    if precision.chosen() != "bf16" or factor.dtype != torch.float32:
        return False
    return rows * uses >= LEAST_ROWS and rows * factor.numel() >= LEAST_MULTIPLY_ADDS


def _in_bf16(x: Tensor, factor: Tensor) -> bool:
    """Whether x factor^T is computed in bf16: also wherever one of them has been rounded already."""
    return torch.bfloat16 in (x.dtype, factor.dtype) or worth_rounding(factor, x.shape[0])


def rounded(factor: Tensor, rows: int, uses: int = 1) -> Tensor:
    """The factor [O, I] of products with `rows` rows, rounded once for all of them where they are computed in bf16."""
    return factor.to(torch.bfloat16) if worth_rounding(factor, rows, uses) else factor


def pack(factor: Tensor, rows: int, uses: int) -> Tensor:
    """Lay out factor [O, I], any strides, for `uses` products with `rows` rows each."""
    if int8.applies(factor):
        return factor  # it is laid out once for all products
    factor = rounded(factor, rows, uses)
    if uses < PACKING_USES or not (uses_onednn(factor) and is_large(factor, rows)):
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


def multiply_in_bf16(x: Tensor, factor: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x factor^T + bias, rounded to bf16 at the end, for x [N, I], bias [O] in float32, factor [O, I]."""
    x, factor = x.to(torch.bfloat16), factor.to(torch.bfloat16)
    if uses_onednn(x):
        return torch.ops.mkldnn._linear_pointwise(x, _dense(factor), bias, "none", [], "")
    product = torch.mm(x, factor.t())
    return product if bias is None else product.add_(bias)


def multiply(x: Tensor, factor: Tensor, bias: Tensor | None = None, *, exact: bool = False) -> Tensor:
    """Return x factor^T + bias, [N, O], for x [N, I], bias [O], factor [O, I], any strides, packed or rounded.

    An `exact` product is float32 where others are bf16.
    """
    if int8.applies(factor):
        return int8.multiply(x, factor, bias)
    if not exact and _in_bf16(x, factor):
        product = _multiply_in_bf16(x, factor)
        return product if bias is None else product.add_(bias)
    if _by_onednn(x, factor):
        dense_bias = None if bias is None else bias.contiguous()
        return torch.ops.mkldnn._linear_pointwise(x, _dense(factor), dense_bias, "none", [], "")
    return functional.linear(x, factor, bias)


def multiply_add(x: Tensor, factor: Tensor, other: Tensor) -> Tensor:
    """Return x factor^T + other, [N, O]; arguments as in `multiply`, and other [N, O]."""
    if int8.applies(factor):
        return int8.multiply(x, factor, None).add_(other)
    if _in_bf16(x, factor):
        return _multiply_in_bf16(x, factor).add_(other)
    if _by_onednn(x, factor):
        return torch.ops.mkldnn._linear_pointwise.binary(x, other.contiguous(), _dense(factor), None, "add")
    return torch.addmm(other, x, factor.t())


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


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x weight^T + bias, [*, O], for x [*, I], weight [O, I] and bias [O] or None.

    As `torch.nn.functional.linear`, but faster on CPUs, where it has first derivatives only, as in bf16 everywhere.
    `torch.compile` chooses a product itself, and cannot read what is chosen here.
    """
    if torch.compiler.is_dynamo_compiling():
        return functional.linear(x, weight, bias)
    rows = x.reshape(-1, x.shape[-1])
    own = _by_onednn(rows, weight) or _in_bf16(rows, weight) or int8.applies(weight)
    if torch.is_autocast_enabled(x.device.type) or _TWICE.get() or not own:
        return functional.linear(x, weight, bias)
    return _Linear.apply(rows, weight, bias).view(*x.shape[:-1], -1)  # type: ignore[no-untyped-call]


def keep(ctx: Any, *tensors: Tensor | None) -> None:
    """Save tensors for a backward pass that is `differentiable_once`, and the precision of its products."""
    ctx.save_for_backward(*tensors)
    ctx.precision = precision.chosen()


def differentiable_once(backward: Backward) -> Backward:
    """Decorate a backward pass, after `keep`, to refuse `create_graph=True` by a RuntimeError.

    Some of our backward passes would otherwise leave terms out of second derivatives. torch's `once_differentiable`
    detects only a dependence on the incoming gradient: if that is a constant, as for a loss, the gradients count as
    constants too.
    """

    @wraps(backward)
    def checked(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError("this fast form has first derivatives only; use the plain form for second derivatives")
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
