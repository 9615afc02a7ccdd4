"""The time mixing of RWKV-7 (Peng et al. 2025, section 4.1): a transition that is diagonal plus a matrix of rank one.

    x_j = x + mu_j (x_before - x)  for j in r, w, k, v, a, g                        each projection has its own mean
    r, k, v = W x_r, W x_k, W x_v             w = exp(-e^{-1/2} sigm(d + V tanh(U x_w)))
    a = sigm(a_0 + V U x_a)                   g = V sigm(U x_g)
    K = unit(k xi),  k~ = k (1 + (a - 1) alpha)                                     unit length in each head
    S' = (diag(w) - (a K) K') S + k~ v'       S [d, d] per head
    h' = W_o (g * (norm(S'' r) + (r rho k~) v))                                     norm: per head, shift and scale

The bonus in the last line reads k~, as the published code does. The value residual of the first layer, a mean of v and
that of the first layer, is left out: a cell sees its own layer only. The squared-ReLU channel mixing of the paper is
left to the core.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, linear, normalize

from elman import config
from elman.network import matmul
from elman.network.cells.cell import Array, Cell, LayerState, Shape, Structured, Weights, product_of_inputs
from elman.network.cells.chunked import chunked
from elman.network.cells.heads import by_heads, width_of

Product: TypeAlias = Callable[..., Tensor]
"""(x, weight, bias) -> x weight^T + bias."""

SLOWEST = math.exp(-0.5)
"""-log w is at most this."""

EPSILON = 64e-5
"""Of the norm of each head, as in the published code for heads of 64."""


@torch.no_grad()
def fill(hidden: Tensor) -> None:
    """The values of xi, alpha and rho, [3, H]: 0.85, 1 and 0."""
    hidden[0], hidden[1], hidden[2] = 0.85, 1.0, 0.0


@torch.no_grad()
def falling(means: Tensor) -> None:
    """From 1, the input before alone, in the first channel to 0, the present one, in the last."""
    means.copy_(torch.linspace(1, 0, means.shape[1]).expand_as(means))


@torch.no_grad()
def slow_to_fast(bias: Tensor) -> None:
    """Decays of 0.998 in the first channel to 0.85 in the last."""
    bias.copy_(torch.linspace(-6, -1, len(bias)))


def build(record: config.RWKV7) -> Cell:
    """The cell of a recipe; a layer raises UserError where the heads do not divide it."""
    heads, rank = record.heads, record.rank

    def project(weights: Weights, x: Tensor, before: Tensor, product: Product) -> tuple[Tensor, ...]:
        """Return r, k~, v, log w, K, a and g of x [..., I] after `before`; all but g by heads."""
        assert weights.extra is not None
        means, u_w, v_w, d, u_a, v_a, a_0, u_g, v_g = weights.extra[:9]
        x_r, x_w, x_k, x_v, x_a, x_g = (torch.lerp(x, before, mean) for mean in means)
        biases = (None,) * 3 if weights.input_bias is None else weights.input_bias.chunk(3)
        r, k, v = (
            product(part, matrix, bias)
            for part, matrix, bias in zip((x_r, x_k, x_v), weights.input.chunk(3), biases, strict=True)
        )
        log_w = -SLOWEST * product(product(x_w, u_w).tanh(), v_w, d).sigmoid()
        a = product(product(x_a, u_a), v_a, a_0).sigmoid()
        g = product(product(x_g, u_g).sigmoid(), v_g)
        xi, alpha, _ = weights.hidden
        direction = normalize(by_heads(k * xi, heads), dim=-1)
        k = k * (1 + (a - 1) * alpha)
        r, k, v, log_w, a = (by_heads(part, heads) for part in (r, k, v, log_w, a))
        return r, k, v, log_w, direction, a, g

    def written(weights: Weights, y: Tensor, r: Tensor, k: Tensor, v: Tensor, g: Tensor) -> Tensor:
        assert weights.extra is not None
        scale, shift = weights.extra[9]
        bonus = (r * by_heads(weights.hidden[2], heads) * k).sum(-1, keepdim=True) * v
        return g * (layer_norm(y, y.shape[-1:], eps=EPSILON).flatten(-2) * scale + shift + bonus.flatten(-2))

    def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
        _, before, S = state
        assert weights.extra is not None
        r, k, v, log_w, direction, a, g = project(weights, x, before, linear)
        removed = (direction.unsqueeze(-1) * S).sum(-2, keepdim=True)
        S = log_w.exp().unsqueeze(-1) * S - (a * direction).unsqueeze(-1) * removed + k.unsqueeze(-1) * v.unsqueeze(-2)
        y = (r.unsqueeze(-1) * S).sum(-2)
        return linear(written(weights, y, r, k, v, g), weights.extra[10]), x, S

    def sequence(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        _, before, S = state
        assert weights.extra is not None
        lagged = torch.cat([before.unsqueeze(0), xs[:-1]])
        r, k, v, log_w, direction, a, g = project(weights, xs, lagged, partial(product_of_inputs, weights))
        y, S = chunked(r, k, v, log_w, S, (-direction, a * direction))
        outputs = matmul.linear(written(weights, y, r, k, v, g), weights.extra[10])
        return outputs, (outputs[-1].clone(), xs[-1].clone(), S)

    def arrays(inputs: int, size: int) -> tuple[Array, ...]:
        width_of(size, heads, "rwkv7")
        into, out = Array((rank, inputs)), Array((size, rank), config.Normal(std=0.1 / math.sqrt(rank)))
        return (
            Array((6, inputs), falling),
            into,
            out,
            Array((size,), slow_to_fast),
            into,
            out,
            Array((size,), config.Zeros()),
            into,
            Array((size, rank), config.Normal(std=1 / math.sqrt(rank))),
            Array((2, size), _scale_and_shift),
            Array((size, size), config.Normal(std=1 / math.sqrt(size))),
        )

    def memory(inputs: int, size: int) -> tuple[Shape, ...]:
        d = size // heads
        return (size,), (inputs,), (heads, d, d)

    return Cell(
        gates=0,
        slots=3,
        step=step,
        sequence=sequence,
        name="rwkv7",
        input_gates=3,
        extra=arrays,
        masks=None,
        structured=Structured(lambda size: (3, size), fill),
        memory=memory,
    )


@torch.no_grad()
def _scale_and_shift(norm: Tensor) -> None:
    norm[0], norm[1] = 1.0, 0.0
