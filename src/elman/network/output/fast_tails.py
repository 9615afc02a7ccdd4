"""Log-likelihood of rows that each choose within a group of symbols: log p(y | h, group of y).

z = h W_group^T + b_group, p = softmax(log g(z)). R rows, D their width, V symbols, S of them in a group. Rows lie
together by group, so a group costs one product with its part of W, and nothing larger than [rows of the group, S] is
formed. That matrix is kept, as d log p / d z, for the backward pass.

A group is a product of its own, and not a slice of one batched product: groups differ in rows by orders of
magnitude, since words do in frequency, and a batch would be padded to the largest. Products of several groups are
torch's: oneDNN compiles one anew for every shape, and the numbers of rows are other ones in every window.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman.network.kernels import matmul
from elman.network.kernels.matmul import differentiable_once
from elman.network.output.activation import SCORE, SLOPE

Members: TypeAlias = slice | Tensor
"""Which rows of W are a group's: a slice is read in place, indices [S] are copied."""

ALL = slice(None)


def log_prob(
    h: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    y: Tensor,
    activation: str,
    members: Sequence[Members] = (ALL,),
    counts: Sequence[int] | None = None,
) -> Tensor:
    """The log-probability [R] of y within its group; differentiable once, in h, weight and bias.

    Args:
        h: [R, D]; the first counts[0] rows choose within members[0], and so on.
        weight: W [V, D].
        bias: b [V] or None.
        y: the place of each target within its group, [R], int64.
        activation: a key of `elman.network.output.activation.LOG_G`.
        members: the groups, which do not overlap; by default one of all symbols.
        counts: how many rows each group has; they add up to R.

    """
    counts = (len(h),) if counts is None else counts
    assert sum(counts) == len(h), "every row has one group"
    with torch.autocast(weight.device.type, enabled=False):
        h = h.to(weight.dtype)
        if torch.is_grad_enabled():
            return _GroupedLogProb.apply(h, weight, bias, y, activation, members, counts)  # type: ignore[no-untyped-call]
        return _forward(h, weight, bias, y, activation, members, counts, None)


def _rows(counts: Sequence[int]) -> Iterator[slice]:
    start = 0
    for count in counts:
        yield slice(start, start + count)
        start += count


def _product(members: Sequence[Members]) -> Callable[..., Tensor]:
    return matmul.multiply if len(members) == 1 else linear


def _forward(
    h: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    y: Tensor,
    activation: str,
    members: Sequence[Members],
    counts: Sequence[int],
    slopes: list[Tensor] | None,
) -> Tensor:
    """The log-probabilities; d log p / d z of every group is appended to `slopes`."""
    found, multiply = h.new_empty(len(h)), _product(members)
    for group, rows in zip(members, _rows(counts), strict=True):
        z = multiply(h[rows], weight[group], None if bias is None else bias[group])
        slope = SLOPE[activation](z) if slopes is not None and activation in SLOPE else None
        log_probs = SCORE[activation](z).log_softmax(dim=-1)
        place = y[rows].unsqueeze(1)
        found[rows] = log_probs.gather(1, place).squeeze(1)
        if slopes is not None:
            d_z = log_probs.exp_().neg_()
            d_z.scatter_add_(1, place, d_z.new_ones(1, 1).expand_as(place))
            slopes.append(d_z if slope is None else d_z.mul_(slope))
    return found


class _GroupedLogProb(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        y: Tensor,
        activation: str,
        members: Sequence[Members],
        counts: Sequence[int],
    ) -> Tensor:
        slopes: list[Tensor] = []
        found = _forward(h, weight, bias, y, activation, members, counts, slopes)
        ctx.members, ctx.counts = members, counts
        ctx.save_for_backward(h, weight, bias, *slopes)
        return found

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, d_log_prob: Tensor) -> tuple[Tensor | None, ...]:
        h, weight, bias, *slopes = ctx.saved_tensors
        d_h, d_weight = torch.empty_like(h), torch.zeros_like(weight)
        d_bias, multiply = None if bias is None else torch.zeros_like(bias), _product(ctx.members)
        for group, rows, slope in zip(ctx.members, _rows(ctx.counts), slopes, strict=True):
            d_z = slope * d_log_prob[rows].unsqueeze(1)
            d_h[rows] = multiply(d_z, weight[group].t())
            d_weight[group] = multiply(d_z.t(), h[rows].t())
            if d_bias is not None:
                d_bias[group] = d_z.sum(0)
        return d_h, d_weight, d_bias, None, None, None, None
