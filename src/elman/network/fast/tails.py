"""Log-likelihood of symbols within groups: log p(y | h, group of y).

z = h W_group^T + b_group, p = softmax(log g(z)). R rows, D their width, V symbols, S of them in a group. Rows are
sorted by group, so a group costs one product with its part of W, and nothing larger than [rows of the group, S] is
formed. That matrix is kept, as d log p / d z, for the backward pass, which scales the narrow factors of its products.

Every group has its own product, not a slice of one batched product: the numbers of rows differ by orders of magnitude,
as word frequencies do, and a batch would be padded to the largest. The products of several groups are torch's: oneDNN
compiles one for every shape, and the numbers of rows change from window to window.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman import config
from elman.network.fast import matmul
from elman.network.fast.matmul import differentiable_once
from elman.network.output.activation import log_of, log_probs, shares

Members: TypeAlias = slice | Tensor
"""The rows of W of a group: a slice is read in place, indices [S] are copied."""

Groups: TypeAlias = Sequence[tuple[Members, slice]]
"""The members of each group, and the rows of h that belong to it."""

ALL = slice(None)


def log_prob(
    h: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    y: Tensor,
    activation: config.Activation,
    members: Sequence[Members] = (ALL,),
    counts: Sequence[int] | None = None,
) -> Tensor:
    """The log-probability [R] of y within its group; differentiable once, in h [R, D], weight W [V, D] and bias b [V].

    The groups `members` do not overlap; by default there is one of all symbols. The first counts[0] rows of h belong to
    members[0], and so on; y [R], int64, is the index of each target within its group.
    """
    counts = (len(h),) if counts is None else counts
    assert sum(counts) == len(h), "every row has one group"
    rows = [slice(end - count, end) for count, end in zip(counts, accumulate(counts), strict=True)]
    groups = list(zip(members, rows, strict=True))
    with matmul.without_autocast(weight):
        h = h.to(weight.dtype)
        if torch.is_grad_enabled():
            return _GroupedLogProb.apply(h, weight, bias, y, activation, groups)  # type: ignore[no-untyped-call]
        return _forward(h, weight, bias, y, activation, groups, None)


def _product(groups: Groups) -> Callable[..., Tensor]:
    return matmul.multiply if len(groups) == 1 else linear


def _forward(
    h: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    y: Tensor,
    activation: config.Activation,
    groups: Groups,
    slopes: list[Tensor] | None,
) -> Tensor:
    """The log-probabilities; d log p / d z of every group is appended to `slopes`."""
    found, multiply = h.new_empty(len(h)), _product(groups)

    def z(rows: slice | Tensor, group: Members) -> Tensor:
        return multiply(h[rows], weight[group], None if bias is None else bias[group])

    def again(rare: Tensor) -> Tensor:
        in_groups = [(group, rare[(rare >= rows.start) & (rare < rows.stop)]) for group, rows in groups]
        scores = [(log_probs(z(rows, group), activation), y[rows]) for group, rows in in_groups if len(rows)]
        return torch.cat([each.gather(1, place.unsqueeze(1)).squeeze(1) for each, place in scores])

    for group, rows in groups:
        p, _, along = shares(z(rows, group), activation, safe=True)
        place = y[rows].unsqueeze(1)
        found[rows] = p.gather(1, place).squeeze(1)
        if slopes is not None:
            d_z = p.neg_()
            d_z.scatter_add_(1, place, d_z.new_ones(1, 1).expand_as(place))
            slopes.append(d_z if along is None else d_z.mul_(along))
    return log_of(found, again)


class _GroupedLogProb(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        y: Tensor,
        activation: config.Activation,
        groups: Groups,
    ) -> Tensor:
        slopes: list[Tensor] = []
        found = _forward(h, weight, bias, y, activation, groups, slopes)
        ctx.groups = groups
        matmul.keep(ctx, h, weight, bias, *slopes)
        return found

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, d_log_prob: Tensor) -> tuple[Tensor | None, ...]:
        h, weight, bias, *slopes = ctx.saved_tensors
        d_h, d_weight = torch.empty_like(h), torch.zeros_like(weight)
        d_bias, multiply = None if bias is None else torch.zeros_like(bias), _product(ctx.groups)
        for (group, rows), along in zip(ctx.groups, slopes, strict=True):
            each = d_log_prob[rows].unsqueeze(1)
            if d_bias is not None:
                d_bias[group] = torch.mv(along.t(), d_log_prob[rows])
            along = matmul.rounded(along, h.shape[1])
            d_h[rows] = multiply(along, weight[group].t()).mul_(each)
            d_weight[group] = multiply((each * h[rows]).t().contiguous(), along.t()).t()
        return d_h, d_weight, d_bias, None, None, None
