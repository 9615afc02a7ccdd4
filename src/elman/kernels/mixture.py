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
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import softplus

from elman.kernels import product
from elman.output.activation import LOG_G, RELU_EPSILON

CHUNK_BYTES = {"cpu": 16 << 20, "cuda": 256 << 20}
"""Size of the [rows, V] matrix of one chunk, and on the CPU half the largest part of the gradient of W formed at
once: larger blocks are given back to the system at every release (`benchmarks/mixture.py --chunks`)."""


def _log_sigmoid(z: Tensor) -> Tensor:
    return softplus(z, beta=-1.0, threshold=40.0)  # four times faster than logsigmoid, and as exact


def _sigsoftmax(z: Tensor) -> tuple[Tensor, Tensor]:
    score = _log_sigmoid(z).add_(z)
    return score, torch.add(z.new_tensor(2.0), z.sigmoid_(), alpha=-1, out=z)


def _sigmoid(z: Tensor) -> tuple[Tensor, Tensor]:
    return _log_sigmoid(z), z.neg_().sigmoid_()


def _softplus(z: Tensor) -> tuple[Tensor, Tensor]:
    score = LOG_G["softplus"](z)
    return score, _log_sigmoid(z).sub_(score).exp_()


def _relu(z: Tensor) -> tuple[Tensor, Tensor]:
    g = z.clamp(min=0).add_(RELU_EPSILON)
    slope = torch.div(z.gt(0), g)
    return g.log_(), slope


UNDERFLOW = 1e-30
"""Below this probability, log p is not taken from p but computed again for its row in the log domain."""

SCORE_AND_SLOPE: dict[str, Callable[[Tensor], tuple[Tensor, Tensor | None]]] = {
    "softmax": lambda z: (z, None),
    "sigsoftmax": _sigsoftmax,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "relu": _relu,
}
"""log g(z) and d log g / d z (None where it is one), in few passes; z is overwritten."""


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
    if not torch.is_grad_enabled():
        nll = -mixture_log_prob(context, log_prior, weight, bias, target, activation)
        return (position_weight * nll).sum(), nll
    with torch.autocast(weight.device.type, enabled=False):
        return _MixtureNLL.apply(
            context.to(weight.dtype),
            None if log_prior is None else log_prior.to(weight.dtype),
            weight,
            bias,
            target,
            position_weight.to(weight.dtype),
            activation,
        )


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
        num_positions, num_components, _ = context.shape
        row_bytes = len(weight) * weight.element_size() * num_components
        step = max(1, CHUNK_BYTES[weight.device.type] // row_bytes)
        uses = -(-num_positions // step)
        return cls(weight, bias, product.pack(weight, step * num_components, uses), step)

    def chunks(self, context: Tensor) -> Iterator[slice]:
        """Whole positions, all components of each."""
        return (slice(start, start + self.step) for start in range(0, len(context), self.step))

    def scores(self, h: Tensor) -> Tensor:
        """z [R, V] of h [R, D]."""
        return product.multiply(h, self.packed, self.bias)

    def log_prob(self, h: Tensor, y: Tensor, activation: str) -> Tensor:
        """log p(y | h), [R]."""
        score, _ = SCORE_AND_SLOPE[activation](self.scores(h))
        return score.log_softmax(dim=-1).gather(1, y.unsqueeze(1)).squeeze(1)

    def probabilities(self, h: Tensor, y: Tensor, activation: str) -> tuple[Tensor, Tensor, Tensor | None]:
        """p [R, V], log p(y | h) [R] and the slope."""
        score, slope = SCORE_AND_SLOPE[activation](self.scores(h))
        p = torch.softmax(score, dim=-1, out=score)
        chosen = p.gather(1, y.unsqueeze(1)).squeeze(1)
        log_prob = chosen.log()
        rare = (chosen < UNDERFLOW).nonzero().squeeze(1)
        if len(rare):
            log_prob[rare] = self.log_prob(h[rare], y[rare], activation)
        return p, log_prob, slope


class _MixtureNLL(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        context: Tensor,
        log_prior: Tensor | None,
        weight: Tensor,
        bias: Tensor | None,
        target: Tensor,
        position_weight: Tensor,
        activation: str,
    ) -> tuple[Tensor, Tensor]:
        num_components = context.shape[1]
        layer = _Layer.of(weight, bias, context)
        back = product.pack(weight.t(), layer.step * num_components, -(-len(context) // layer.step))
        nll, d_prior = context.new_empty(len(context)), context.new_empty(context.shape[:2])
        d_context = torch.empty_like(context)
        d_weight = _TransposedGradient(weight)
        d_bias = None if bias is None else torch.zeros_like(bias)
        for chunk in layer.chunks(context):
            h = context[chunk].flatten(0, 1)
            y = target[chunk].repeat_interleave(num_components)
            p, log_prob, slope = layer.probabilities(h, y, activation)
            joint = log_prob.view(-1, num_components)
            if log_prior is not None:
                joint = joint + log_prior[chunk]
            nll[chunk] = -joint.logsumexp(dim=1)
            d_prior[chunk] = -(joint + nll[chunk, None]).exp() * position_weight[chunk, None]
            r = -d_prior[chunk].view(-1, 1)
            p[torch.arange(len(y), device=y.device), y] -= 1
            if slope is not None:
                p *= slope
            d_context[chunk] = product.multiply(p, back).mul_(r).view_as(d_context[chunk])
            d_weight.add(r * h, p)
            if d_bias is not None:
                d_bias.addmv_(p.t(), r.view(-1))
        ctx.save_for_backward(d_context, None if log_prior is None else d_prior, d_weight.transposed, d_bias)
        ctx.mark_non_differentiable(nll)
        return (nll * position_weight).sum(), nll

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, scale: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        d_context, d_prior, d_weight_t, d_bias = ctx.saved_tensors
        d_weight = torch.mul(d_weight_t.t(), scale, out=d_weight_t.new_empty(d_weight_t.shape[::-1]))
        scaled = [None if gradient is None else gradient * scale for gradient in (d_context, d_prior, d_bias)]
        return scaled[0], scaled[1], d_weight, scaled[2], None, None, None


class _TransposedGradient:
    """The sum over chunks of (p^T h)^T, [D, V]: so turned, no [R, V] matrix is ever copied to be transposed."""

    def __init__(self, weight: Tensor) -> None:
        self.transposed = weight.new_zeros(weight.shape[1], weight.shape[0])
        self.columns = max(
            1, CHUNK_BYTES[weight.device.type] // (2 * weight.shape[1] * weight.element_size())
        )

    def add(self, h: Tensor, p: Tensor) -> None:
        """Add the part of rows h [R, D] and p [R, V]."""
        h_t = h.t().contiguous()
        for block, part in zip(self.transposed.split(self.columns, 1), p.split(self.columns, 1), strict=True):
            block += product.multiply(h_t, part.t())
