"""Local self-attention with rotary positions: the transformer's way to read the past, with a state of constant size.

    q, k, v = W x + b                 R_t turns the pairs (i, i + n) of a head by angles t 10000^(-i/n), n = d // 2
    a_ts = softmax_s(<R_t q_t, R_s k_s> / sqrt(d)),  t - window < s <= t                h_t = W_o sum_s a_ts v_s

Scaled dot products in heads: Vaswani et al. 2017, section 3.2; rotary positions: Su et al. 2021, section 3.2.2; a
window of past inputs, as in the attention layers of Griffin (De et al. 2024, section 2.3). The state is the keys and
values of the last window - 1 steps, and for each of them whether there was one. Training reads those of the window
before without a gradient, as Transformer-XL does (Dai et al. 2019). With feed-forward halves and norms, the core
`residual` of this cell is a transformer.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import linear, scaled_dot_product_attention

from elman import config
from elman.network import matmul
from elman.network.cells.cell import Array, Cell, LayerState, Shape, Weights, input_products
from elman.network.cells.heads import by_heads, width_of

BASE = 10000.0


def turned(x: Tensor, positions: Tensor) -> Tensor:
    """R of each position [P] applied to x [..., P, d]; scores depend on differences of positions alone."""
    half = x.shape[-1] // 2
    rates = BASE ** (-torch.arange(half, dtype=x.dtype, device=x.device) / half)
    angles = positions.to(x.dtype).unsqueeze(-1) * rates
    cos, sin = angles.cos(), angles.sin()
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat([first * cos - second * sin, first * sin + second * cos, rest], dim=-1)


def build(record: config.LocalAttention) -> Cell:
    """The cell of a recipe; a layer raises UserError where the heads do not divide it."""
    heads, earlier = record.heads, record.window - 1

    def divided(x: Tensor) -> Tensor:
        """[B, P, H] to [B, heads, P, d]."""
        return by_heads(x, heads).transpose(1, 2)

    def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
        _, keys, values, there = state
        assert weights.extra is not None
        q, k, v = linear(x, weights.input, weights.input_bias).chunk(3, dim=-1)
        keys, values = torch.cat([keys, k.unsqueeze(1)], dim=1), torch.cat([values, v.unsqueeze(1)], dim=1)
        there = torch.cat([there, torch.ones_like(there[:, :1])], dim=1)
        places = torch.arange(earlier + 1, device=x.device)
        scores = (turned(divided(q.unsqueeze(1)), places[-1:]) * turned(divided(keys), places)).sum(-1)
        scores = scores / math.sqrt(q.shape[-1] // heads)
        shares = scores.masked_fill((there <= 0).unsqueeze(1), -math.inf).softmax(-1)
        y = (shares.unsqueeze(-1) * divided(values)).sum(-2).flatten(1)
        return linear(y, weights.extra[0]), keys[:, 1:], values[:, 1:], there[:, 1:]

    def sequence(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        _, keys, values, there = state
        assert weights.extra is not None
        steps = len(xs)
        q, k, v = input_products(weights, xs).transpose(0, 1).chunk(3, dim=-1)
        keys, values = torch.cat([keys, k], dim=1), torch.cat([values, v], dim=1)
        there = torch.cat([there, there.new_ones(len(there), steps)], dim=1)
        places = torch.arange(earlier + steps, device=xs.device)
        lags = places[earlier:, None] - places
        seen = ((lags >= 0) & (lags <= earlier)) & (there > 0)[:, None, None]
        y = scaled_dot_product_attention(
            turned(divided(q), places[earlier:]), turned(divided(keys), places), divided(values), seen
        )
        outputs = matmul.linear(y.permute(2, 0, 1, 3).flatten(2), weights.extra[0])
        return outputs, (outputs[-1].clone(), keys[:, steps:], values[:, steps:], there[:, steps:])

    def arrays(_: int, size: int) -> tuple[Array, ...]:
        width_of(size, heads, "local-attention")
        return (Array((size, size), config.Normal(std=1 / math.sqrt(size))),)

    def memory(_: int, size: int) -> tuple[Shape, ...]:
        return (size,), (earlier, size), (earlier, size), (earlier,)

    return Cell(
        gates=0,
        slots=4,
        step=step,
        sequence=sequence,
        name="local-attention",
        input_gates=3,
        extra=arrays,
        masks=None,
        memory=memory,
    )
