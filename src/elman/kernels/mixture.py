"""Linear mixture log-likelihood: log p(y) = logsumexp_k [ log pi_k + log g(z_ky) - logsumexp_v log g(z_kv) ].

z = context W^T + b. N positions, K components, D context width, V symbols. The plain form makes an [N, K, V]
tensor and keeps it for the backward pass. Here positions are taken in chunks, with all components of a position in
one chunk: their responsibilities are then known at once, so the gradients are formed in the forward pass, by the
same three matrix products that the plain form needs, and nothing of size V is kept but the gradient of W.

With score s = log g(z), p = softmax(s), slope = d s / d z and responsibility r of a component for its position,

    d nll / d z_v = r slope_v (p_v - [v = y]),

and r, which belongs to a row, scales the narrow factors of the products and never the [*, V] matrix.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import logsigmoid

from elman.kernels import product
from elman.output.activation import LOG_G, RELU_EPSILON

CHUNK_BYTES = {"cpu": 12 << 20, "cuda": 256 << 20}
"""Size of the [rows, V] matrix of one chunk (`benchmarks/mixture.py --chunks`)."""

SLOPE: dict[str, Callable[[Tensor], Tensor]] = {
    "sigsoftmax": lambda z: 1 + (-z).sigmoid(),
    "sigmoid": lambda z: (-z).sigmoid(),
    "softplus": lambda z: (logsigmoid(z) - LOG_G["softplus"](z)).exp(),
    "relu": lambda z: (z > 0) / (z.relu() + RELU_EPSILON),
}
"""d log g / d z; for softmax it is one."""


def mixture_nll(
    context: Tensor,
    log_prior: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    position_weight: Tensor,
    activation: str,
) -> tuple[Tensor, Tensor]:
    """The weighted negative log-likelihood of the targets.

    Differentiable once, in context, log_prior, weight and bias.

    Args:
        context: [N, K, D].
        log_prior: log pi, [N, K]; None stands for K = 1 with pi = 1.
        weight: W [V, D].
        bias: b [V] or None.
        target: symbols [N], int64.
        position_weight: [N]; no gradient.
        activation: a key of `LOG_G`.

    Returns:
        sum_n position_weight_n nll_n, and nll [N] (nats), detached.
    """
    assert log_prior is not None or context.shape[1] == 1, "several components need a log_prior"
    context, log_prior, position_weight = _cast(weight.dtype, context, log_prior, position_weight)
    if torch.is_grad_enabled():
        return _MixtureNLL.apply(context, log_prior, weight, bias, target, position_weight, activation)
    nll = -mixture_log_prob(context, log_prior, weight, bias, target, activation)
    return (position_weight * nll).sum(), nll


@torch.no_grad()
def mixture_log_prob(
    context: Tensor,
    log_prior: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    activation: str,
) -> Tensor:
    """The log-likelihood [N] of the targets, without gradients; arguments as in `mixture_nll`."""
    context, log_prior = _cast(weight.dtype, context, log_prior)
    with torch.autocast(weight.device.type, enabled=False):
        log_prob = context.new_empty(context.shape[:2])
        forward = product.pack(weight, _rows(context, weight))
        for chunk in _chunks(context, weight):
            h = context[chunk].flatten(0, 1)
            y = target[chunk].repeat_interleave(context.shape[1])
            scores = LOG_G[activation](product.multiply(h, forward, bias))
            log_prob[chunk] = scores.log_softmax(-1)[torch.arange(len(y), device=y.device), y].view_as(
                log_prob[chunk]
            )
        return torch.logsumexp(log_prob if log_prior is None else log_prior + log_prob, dim=1)


def _cast(dtype: torch.dtype, *tensors: Tensor | None) -> list[Tensor | None]:
    return [None if tensor is None else tensor.to(dtype) for tensor in tensors]


def _rows(context: Tensor, weight: Tensor) -> int:
    """Rows of a chunk: whole positions, at least one."""
    wanted = CHUNK_BYTES.get(weight.device.type, CHUNK_BYTES["cuda"]) // (len(weight) * weight.element_size())
    return context.shape[1] * max(1, wanted // context.shape[1])


def _chunks(context: Tensor, weight: Tensor) -> Iterator[slice]:
    step = _rows(context, weight) // context.shape[1]
    return (slice(start, start + step) for start in range(0, len(context), step))


class _MixtureNLL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, context, log_prior, weight, bias, target, position_weight, activation):
        num_components = context.shape[1]
        rows = _rows(context, weight)
        forward, backward = product.pack(weight, rows), product.pack(weight.t(), rows)
        nll = context.new_empty(len(context))
        d_context, d_prior = torch.empty_like(context), context.new_empty(context.shape[:2])
        d_weight_t, d_bias = (
            context.new_zeros(weight.shape[1], weight.shape[0]),
            context.new_zeros(len(weight)),
        )
        with torch.autocast(weight.device.type, enabled=False):
            for chunk in _chunks(context, weight):
                h = context[chunk].flatten(0, 1)
                y = target[chunk].repeat_interleave(num_components)
                row = torch.arange(len(y), device=y.device)
                z = product.multiply(h, forward, bias)
                slope = SLOPE[activation](z) if activation in SLOPE else None
                p = LOG_G[activation](z).log_softmax(-1)
                joint = p[row, y].view(-1, num_components)
                if log_prior is not None:
                    joint = joint + log_prior[chunk]
                nll[chunk] = -joint.logsumexp(1)
                share = (joint + nll[chunk, None]).exp() * position_weight[chunk, None]
                d_prior[chunk] = -share
                r = share.view(-1, 1)
                p.exp_()[row, y] -= 1
                if slope is not None:
                    p *= slope
                d_context[chunk] = (product.multiply(p, backward) * r).view_as(d_context[chunk])
                d_weight_t += product.multiply((r * h).t(), p.t())
                d_bias += p.t().mv(r.view(-1))
        ctx.save_for_backward(d_context, d_prior, d_weight_t.t().contiguous(), d_bias)
        ctx.has = log_prior is not None, bias is not None
        ctx.mark_non_differentiable(nll)
        return (nll * position_weight).sum(), nll

    @staticmethod
    @once_differentiable
    def backward(ctx, scale, _):
        d_context, d_prior, d_weight, d_bias = ctx.saved_tensors
        has_prior, has_bias = ctx.has
        return (
            d_context * scale,
            d_prior * scale if has_prior else None,
            d_weight * scale,
            d_bias * scale if has_bias else None,
            None,
            None,
            None,
        )
