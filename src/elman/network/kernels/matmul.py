"""Matrix products with a factor [O, I] given as a linear layer has it, and laid out for the processor.

For float32 on the CPU they go to oneDNN, which runs at the full vector width of the machine for narrow and
for wide factors; the BLAS behind `torch.mm` does not on every processor (`benchmarks/recurrent.py` prints
both). Elsewhere, and inside `torch.backends.mkldnn.flags(enabled=False)`, they are `torch.addmm`. None of
these functions is differentiable: they serve the kernels, which form their own gradients.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

# FOLDED kernels/once.py: A backward pass that says no to second derivatives instead of leaving terms out of them.
Backward = Callable[..., tuple[Tensor | None, ...]]


def differentiable_once(backward: Backward) -> Backward:
    """Refuse `create_graph=True`.

    torch's own `once_differentiable` notices only what depends on the incoming gradient: where that is a
    constant, as for a loss, it takes the gradients for constants too.

    Raises:
        RuntimeError: from the decorated function, when a graph of the backward pass is asked for.
    """

    @wraps(backward)
    def checked(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError("this fast form is differentiable once; use the plain form for second derivatives")
        return backward(ctx, *gradients)

    return checked


PACKING_USES = 4
"""A factor used fewer times than this is not laid out anew: that costs about as much as reading it thrice."""


@cache
def _onednn_works() -> bool:
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        factor = torch.ops.mkldnn._reorder_linear_weight(torch.eye(2), 1)
        product = torch.ops.mkldnn._linear_pointwise(torch.ones(1, 2), factor, None, "none", [], "")
    except (AttributeError, RuntimeError):
        return False
    return bool(product.eq(1).all())


def uses_onednn(like: Tensor) -> bool:
    """Whether products of tensors of this kind go to oneDNN."""
    if like.device.type != "cpu" or like.dtype != torch.float32:
        return False
    return bool(torch.backends.mkldnn.enabled) and _onednn_works()


def pack(factor: Tensor, rows: int, uses: int) -> Tensor:
    """Lay out factor [O, I], any strides, for `uses` products with `rows` rows each."""
    if uses < PACKING_USES or not uses_onednn(factor):
        return factor
    return torch.ops.mkldnn._reorder_linear_weight(factor, rows)


def _dense(factor: Tensor) -> Tensor:
    # oneDNN takes a factor whose rows or columns lie apart too, but by a path a thousand times slower.
    if factor.is_mkldnn or factor.is_contiguous() or factor.t().is_contiguous():
        return factor
    return factor.contiguous()


def multiply(x: Tensor, factor: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x factor^T + bias, [N, O], for x [N, I]; factor [O, I], any strides or from `pack`; bias [O]."""
    if uses_onednn(x):
        dense_bias = None if bias is None else bias.contiguous()
        return torch.ops.mkldnn._linear_pointwise(x, _dense(factor), dense_bias, "none", [], "")
    return linear(x, factor, bias)


def multiply_add(x: Tensor, factor: Tensor, other: Tensor) -> Tensor:
    """Return x factor^T + other, [N, O]; arguments as in `multiply`, and other [N, O]."""
    if uses_onednn(x):
        return torch.ops.mkldnn._linear_pointwise.binary(x, other.contiguous(), _dense(factor), None, "add")
    return torch.addmm(other, x, factor.t())


def sum_biases(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """Return the sum of those that are there, [O], or None."""
    if one is None or other is None:
        return other if one is None else one
    return one + other


# FOLDED kernels/linear.py: A linear layer whose three products all run as `kernels.product` has them.
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x weight^T + bias, [*, O], for x [*, I], weight [O, I] and bias [O] or None.

    It is `torch.nn.functional.linear`, faster on CPUs; where it differs from that, differentiable once.
    """
    if torch.is_autocast_enabled(x.device.type) or not uses_onednn(x):
        return functional.linear(x, weight, bias)
    return _Linear.apply(x.reshape(-1, x.shape[-1]), weight, bias).view(*x.shape[:-1], -1)  # type: ignore[no-untyped-call]


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
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
