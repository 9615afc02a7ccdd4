"""Linear mixture log-likelihood: log p(y) = logsumexp_k [ log pi_k + log g(z_ky) - logsumexp_v log g(z_kv) ].

z = context W^T + b. N positions, K components, D context width, V symbols, R rows (components of positions)
of a chunk. The plain form makes an [N, K, V] tensor and keeps it for the backward pass. Here positions are
processed in chunks, with all components of a position in one chunk. Their responsibilities are then known, so
the gradients are formed in the forward pass, by the three matrix products that the plain form needs too, and
only the gradients are kept.

With score s = log g(z), p = softmax(s), slope = d s / d z and the responsibility r of a component,

    d nll / d z_v = r slope_v (p_v - [v = y]),

and r, one number per row, scales the narrow factors of the products and never the [R, V] matrix.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from elman import config
from elman.network import matmul
from elman.network.matmul import differentiable_once
from elman.network.output import triton_rows
from elman.network.output.activation import SAFE_TOTAL, Shares, log_probs, shares

BLOCK_BYTES = 28 << 20
"""Largest part of the gradient that is formed in one product. The C library does not reuse blocks of 32 MB and more
but returns them to the system, and page faults then cost more than the product."""

CHUNK_BYTES = defaultdict(lambda: 256 << 20, cpu=12 << 20)
"""By the type of device: the least size of the [R, V] matrix of one chunk (`benchmarks/mixture.py`)."""

CHUNK_ROWS = 256
"""A chunk has at least min(CHUNK_ROWS, D / 2) rows too: with fewer, adding its part to the gradient of W
costs more than forming it. The [R, V] matrix then stays below half of W."""

UNDERFLOW = 1e-30
"""Below this probability, log p is computed again in the log domain."""


def mixture_nll(
    context: Tensor,
    log_prior: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    position_weight: Tensor,
    activation: config.Activation,
) -> tuple[Tensor, Tensor]:
    """sum_n position_weight_n nll_n, and the negative log-likelihoods nll [N] (nats) of the targets, detached.

    Differentiable once, in context [N, K, D], log_prior = log pi [N, K] (None stands for K = 1 with pi = 1), weight W
    [V, D] and bias b [V] or None. Targets are symbols [N], int64.
    """
    assert log_prior is not None or context.shape[1] == 1, "several components need a log_prior"
    if not torch.is_grad_enabled():
        nll = -mixture_log_prob(context, log_prior, weight, bias, target, activation)
        return (position_weight * nll).sum(), nll
    context, log_prior = context.to(weight.dtype), None if log_prior is None else log_prior.to(weight.dtype)
    each = position_weight.to(weight.dtype)
    with torch.autocast(weight.device.type, enabled=False):
        return _MixtureNLL.apply(context, log_prior, weight, bias, target, each, activation)  # type: ignore[no-untyped-call]


@torch.no_grad()
def mixture_log_prob(
    context: Tensor,
    log_prior: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    activation: config.Activation,
) -> Tensor:
    """The log-likelihood [N] of the targets, without gradients; arguments as in `mixture_nll`."""
    context, log_prior = context.to(weight.dtype), None if log_prior is None else log_prior.to(weight.dtype)
    with torch.autocast(weight.device.type, enabled=False):
        joint = context.new_empty(context.shape[:2])
        layer = _Layer.of(weight, bias, context)
        for chunk in layer.chunks(context):
            y = target[chunk].repeat_interleave(context.shape[1])
            joint[chunk] = layer.log_prob(context[chunk].flatten(0, 1), y, activation).view_as(joint[chunk])
        return torch.logsumexp(joint if log_prior is None else log_prior + joint, dim=1)


class _Layer(NamedTuple):
    """z = h W^T + b for chunks of rows h, with W laid out once."""

    weight: Tensor
    bias: Tensor | None
    packed: Tensor
    step: int

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None, context: Tensor) -> "_Layer":
        num_positions, num_components, width = context.shape
        least = CHUNK_BYTES[weight.device.type] // (len(weight) * weight.element_size())
        step = max(1, max(least, min(CHUNK_ROWS, width // 2)) // num_components)
        rows, uses = min(step, num_positions) * num_components, -(-num_positions // step)
        return cls(weight, bias, matmul.pack(weight, rows, uses), step)

    def chunks(self, context: Tensor) -> Iterator[slice]:
        """Whole positions, all components of each."""
        return (slice(start, start + self.step) for start in range(0, len(context), self.step))

    def z(self, h: Tensor) -> Tensor:
        """The matrix z [R, V] of h [R, D]."""
        return matmul.multiply(h, self.packed, self.bias)

    def log_prob(self, h: Tensor, y: Tensor, activation: config.Activation) -> Tensor:
        """Log p(y | h) [R]."""
        if triton_rows.applies(h, activation):
            return triton_rows.log_prob(self.z(h), y, activation)
        return self.shares(h, y, activation)[1]

    def derivative(self, h: Tensor, y: Tensor, activation: config.Activation) -> tuple[Tensor, Tensor | None, Tensor]:
        """The derivative of -log p(y | h) by z, [R, V], what its rows are still to be divided by, and log p(y | h)."""
        if triton_rows.applies(h, activation):
            z = self.z(h)
            log_prob = triton_rows.log_prob(z, y, activation, derive=True)
            return z, None, log_prob
        (amounts, total, slope), log_prob = self.shares(h, y, activation)
        amounts[torch.arange(len(y), device=y.device), y] -= 1 if total is None else total.squeeze(1)
        return amounts if slope is None else amounts.mul_(slope), total, log_prob

    def shares(self, h: Tensor, y: Tensor, activation: config.Activation) -> tuple[Shares, Tensor]:
        """The distributions [R, V], and log p(y | h) [R]."""
        found = shares(self.z(h), activation)
        if found.total is not None and found.total.min() < SAFE_TOTAL:
            found = shares(self.z(h), activation, safe=True)
        chosen = found.amounts.gather(1, y.unsqueeze(1))
        p = (chosen if found.total is None else chosen / found.total).squeeze(1)
        log_prob = p.log()
        rare = (p < UNDERFLOW).nonzero().squeeze(1)
        if len(rare):
            log_prob[rare] = log_probs(self.z(h[rare]), activation).gather(1, y[rare].unsqueeze(1)).squeeze(1)
        return found, log_prob


class _MixtureNLL(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        context: Tensor,
        log_prior: Tensor | None,
        weight: Tensor,
        bias: Tensor | None,
        target: Tensor,
        position_weight: Tensor,
        activation: config.Activation,
    ) -> tuple[Tensor, Tensor]:
        num_components = context.shape[1]
        layer = _Layer.of(weight, bias, context)
        nll, d_prior = context.new_empty(len(context)), context.new_empty(context.shape[:2])
        d_context = torch.empty_like(context)
        d_weight = SummedGradient(weight)
        weight_t = matmul.rounded(weight.t(), min(layer.step, len(context)) * num_components)
        d_bias = None if bias is None else torch.zeros_like(bias)
        for chunk in layer.chunks(context):
            h = context[chunk].flatten(0, 1)
            y = target[chunk].repeat_interleave(num_components)
            d_z, total, log_prob = layer.derivative(h, y, activation)
            joint = log_prob.view(-1, num_components)
            if log_prior is not None:
                joint = joint + log_prior[chunk]
            nll[chunk] = -joint.logsumexp(dim=1)
            d_prior[chunk] = -(joint + nll[chunk, None]).exp() * position_weight[chunk, None]
            r = -d_prior[chunk].view(-1, 1)
            r = r if total is None else r / total
            if d_bias is not None:
                d_bias.addmv_(d_z.t(), r.view(-1))
            d_z = matmul.rounded(d_z, h.shape[1])
            d_context[chunk] = matmul.multiply(d_z, weight_t).mul_(r).view_as(d_context[chunk])
            d_weight.add(r * h, d_z)
        matmul.keep(ctx, d_context, None if log_prior is None else d_prior, d_weight.transposed, d_bias)
        ctx.mark_non_differentiable(nll)
        return (nll * position_weight).sum(), nll

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        d_context, d_prior, d_weight_t, d_bias = ctx.saved_tensors
        d_weight = torch.mul(d_weight_t.t(), scale, out=d_weight_t.new_empty(d_weight_t.shape[::-1]))
        scaled = [None if gradient is None else gradient * scale for gradient in (d_context, d_prior, d_bias)]
        return scaled[0], scaled[1], d_weight, scaled[2], None, None, None


class SummedGradient:
    """The gradient of W [V, D], summed over chunks as (p^T h)^T [D, V]: no [R, V] matrix is transposed."""

    def __init__(self, weight: Tensor) -> None:
        self.transposed = weight.new_zeros(weight.shape[1], weight.shape[0])
        self.columns = max(1, BLOCK_BYTES // (weight.shape[1] * weight.element_size()))

    def add(self, h: Tensor, p: Tensor) -> None:
        """Add the term of rows h [R, D] and p [R, V]."""
        h_t, num_symbols = h.t().contiguous(), p.shape[1]
        for start in range(0, num_symbols, self.columns):
            block = slice(start, start + self.columns)
            self.transposed[:, block] += matmul.multiply(h_t, p[:, block].contiguous().t())
