"""Kernels as operators of torch, `torch.ops.elman`: torch.compile calls them, and neither follows them nor stops there.

An operator is the forward pass of a kernel, which returns what its backward pass reads too; that is the operator
`gradients`. The precision of the products is read when an operator runs, and kept for the backward pass as a number.
"""

from types import SimpleNamespace
from typing import Any, get_args

import torch
from torch import Tensor
from torch._library.custom_ops import CustomOpDef

from elman.network.fast import precision

KINDS = get_args(precision.Precision)
KERNELS: dict[str, type[torch.autograd.Function]] = {}


class Context(SimpleNamespace):
    """The context of a pass of a kernel, outside of autograd."""

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        self.saved_tensors = tensors


def forward(name: str, *given: Any) -> tuple[Tensor, ...]:
    """The results of a kernel, the further arrays that it keeps, and the number of its precision.

    A kernel keeps xs, the first state, both matrices, and then arrays of its own and the outputs.
    """
    context = Context()
    found = KERNELS[name].forward(context, *given)
    results = found if isinstance(found, tuple) else (found,)
    return *results, *context.saved_tensors[4:-1], torch.tensor(KINDS.index(context.precision))


@torch.library.custom_op("elman::gradients", mutates_args=())
def gradients(
    name: str, given: list[Tensor | None], kept: list[Tensor], kind: Tensor, needs: list[bool], d: list[Tensor]
) -> list[Tensor]:
    """The gradients of a kernel; an empty tensor for what needs none."""
    context = Context(saved_tensors=kept, precision=KINDS[int(kind)], needs_input_grad=needs)
    found = KERNELS[name].backward(context, *d)[: len(given)]
    pairs = zip(found, needs, strict=True)
    return [one.contiguous() if need and one is not None else d[0].new_empty(0) for one, need in pairs]


@gradients.register_fake
def _(_name: str, given: list[Tensor | None], *rest: Any) -> list[Tensor]:
    needs, d = rest[-2:]
    pairs = zip(given, needs, strict=True)
    return [one.new_empty(one.shape) if need and one is not None else d[0].new_empty(0) for one, need in pairs]


def register(operator: CustomOpDef, kernel: type[torch.autograd.Function], results: int, matrices: slice) -> None:
    """Give an operator with arguments (xs, h, ..., exact) the gradients of its kernel, which has `results` results."""
    name = operator._qualname
    KERNELS[name] = kernel

    def keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs[:-1], *output)
        ctx.set_materialize_grads(False)

    def backward(ctx: Any, *d: Tensor | None) -> tuple[Tensor | None, ...]:
        count = len(ctx.needs_input_grad) - 1
        given, output = list(ctx.saved_tensors[:count]), ctx.saved_tensors[count:]
        kept = [*given[:2], *given[matrices], *output[results:-1], output[0]]
        pairs = zip(output[:results], d[:results], strict=True)
        pulls = [torch.zeros_like(one) if pull is None else pull for one, pull in pairs]
        needs = list(ctx.needs_input_grad[:count])
        found = gradients(name, given, kept, output[-1], needs, pulls)
        return *(one if need else None for one, need in zip(found, needs, strict=True)), None

    operator.register_autograd(backward, setup_context=keep)
