"""A linear layer whose three products all run as `kernels.product` has them."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elman.kernels import product
from elman.kernels.once import differentiable_once


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x weight^T + bias, [*, O], for x [*, I], weight [O, I] and bias [O] or None.

    It is `torch.nn.functional.linear`, faster on CPUs; where it differs from that, differentiable once.
    """
    if torch.is_autocast_enabled(x.device.type) or not product.uses_onednn(x):
        return functional.linear(x, weight, bias)
    return _Linear.apply(x.reshape(-1, x.shape[-1]), weight, bias).view(*x.shape[:-1], -1)  # type: ignore[no-untyped-call]


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product.multiply(x, weight, bias)

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, d_y: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        return (
            product.multiply(d_y, weight.t()) if needs_x else None,
            product.multiply(d_y.t(), x.t()) if needs_weight else None,
            d_y.sum(0) if needs_bias else None,
        )
