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

from typing import Any

import torch
from torch import Tensor

from elman import config
from elman.network.fast import matmul
from elman.network.fast.matmul import differentiable_once
from elman.network.fast.mixture_products import Layer


def nll(
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
        nll = -log_prob(context, log_prior, weight, bias, target, activation)
        return (position_weight * nll).sum(), nll
    context, log_prior = context.to(weight.dtype), None if log_prior is None else log_prior.to(weight.dtype)
    each = position_weight.to(weight.dtype)
    with matmul.without_autocast(weight):
        return _MixtureNLL.apply(context, log_prior, weight, bias, target, each, activation)  # type: ignore[no-untyped-call]


@torch.no_grad()
def log_prob(
    context: Tensor,
    log_prior: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    activation: config.Activation,
) -> Tensor:
    """The log-likelihood [N] of the targets, without gradients; arguments as in `nll`."""
    context, log_prior = context.to(weight.dtype), None if log_prior is None else log_prior.to(weight.dtype)
    with matmul.without_autocast(weight):
        joint = context.new_empty(context.shape[:2])
        layer = Layer.of(weight, bias, context)
        for chunk in layer.chunks(context):
            y = target[chunk].repeat_interleave(context.shape[1])
            joint[chunk] = layer.log_prob(context[chunk].flatten(0, 1), y, activation).view_as(joint[chunk])
        return torch.logsumexp(joint if log_prior is None else log_prior + joint, dim=1)


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
        layer = Layer.of(weight, bias, context)
        nll, d_prior = context.new_empty(len(context)), context.new_empty(context.shape[:2])
        d_context = torch.empty_like(context)
        products = layer.products(len(context))
        for chunk in layer.chunks(context):
            h = context[chunk].flatten(0, 1)
            y = target[chunk].repeat_interleave(num_components)
            d_z, total, log_prob = products.derivative(h, y, activation)
            joint = log_prob.view(-1, num_components)
            if log_prior is not None:
                joint = joint + log_prior[chunk]
            nll[chunk] = -joint.logsumexp(dim=1)
            d_prior[chunk] = -(joint + nll[chunk, None]).exp() * position_weight[chunk, None]
            r = -d_prior[chunk].view(-1, 1)
            d_h = products.add(h, d_z, r if total is None else r / total)
            d_context[chunk] = d_h.view_as(d_context[chunk])
        matmul.keep(ctx, d_context, None if log_prior is None else d_prior, products.d_weight(), products.d_bias)
        ctx.mark_non_differentiable(nll)
        return (nll * position_weight).sum(), nll

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        d_context, d_prior, summed, d_bias = ctx.saved_tensors
        d_weight = torch.mul(summed, scale, out=summed.new_empty(summed.shape))
        scaled = [None if gradient is None else gradient * scale for gradient in (d_context, d_prior, d_bias)]
        return scaled[0], scaled[1], d_weight, scaled[2], None, None, None
