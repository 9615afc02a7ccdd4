"""The greatest of each of several runs of rows."""

from typing import Any

import torch
from torch import Tensor

from elman.kernels.once import differentiable_once


def segment_max(x: Tensor, lengths: Tensor) -> Tensor:
    """The maximum over each run of rows, [n, F], for x [P, F] and the runs' lengths [n], none empty, of sum P.

    Rows that are equally great share the gradient. `torch.segment_reduce` gives all of it to each of them where it is
    negative, so only its forward pass is used. Differentiable once.
    """
    return _SegmentMax.apply(x, lengths)  # type: ignore[no-untyped-call]


class _SegmentMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, lengths: Tensor) -> Tensor:
        y = torch.segment_reduce(x, "max", lengths=lengths)
        ctx.save_for_backward(x, y, lengths)
        return y

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, d_y: Tensor) -> tuple[Tensor, None]:
        x, y, lengths = ctx.saved_tensors
        run = torch.repeat_interleave(lengths, output_size=len(x))
        greatest = (x == y.index_select(0, run)).to(x.dtype)
        share = d_y / torch.segment_reduce(greatest, "sum", lengths=lengths)
        return greatest.mul_(share.index_select(0, run)), None
