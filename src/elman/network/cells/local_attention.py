"""Local self-attention with rotary positions: the transformer's way to read the past, with a state of constant size.

    q, k, v = W x + b                 R_t turns the pairs (i, i + n) of a head by angles t 10000^(-i/n), n = d // 2
    a_ts = softmax_s(<R_t q_t, R_s k_s> / sqrt(d)),  t - window < s <= t                h_t = W_o sum_s a_ts v_s

Scaled dot products in heads: Vaswani et al. 2017, section 3.2; rotary positions: Su et al. 2021, section 3.2.2; a
window of past inputs, as in the attention layers of Griffin (De et al. 2024, section 2.3). The state is the keys and
values of the last window - 1 steps, and for each of them whether there was one. No gradient passes into the training
window before, as in Transformer-XL (Dai et al. 2019). With feed-forward halves and norms, the core
`residual` of this cell is a transformer.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import linear, scaled_dot_product_attention

from elman.config.initialisation import Normal
from elman.config.record import Positive, Reach
from elman.network.cells.cell import Array, Cell, LayerState, Shape, Weights, input_products
from elman.network.cells.heads import by_heads, width_of
from elman.network.fast import matmul

BASE = 10000.0


class LocalAttention(Cell, frozen=True, tag="local-attention"):
    """The attention above over the present input and the `window` - 1 before it; `out_proj` [H, H] is W_o."""

    heads: Positive = 4
    window: Reach = 128
    masks = None
    input_gates = ("q", "k", "v")

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        """W_o; raises UserError where the heads do not divide the layer."""
        width_of(size, self.heads, "local-attention")
        return {"out_proj": Array((size, size), Normal(std=1 / math.sqrt(size)))}

    def shapes(self, inputs: int, size: int) -> tuple[Shape, ...]:
        """h, keys, values, and which of them there were."""
        earlier = self.window - 1
        return (size,), (earlier, size), (earlier, size), (earlier,)

    def step(self, w: Weights, x: Tensor, state: LayerState) -> LayerState:
        _, keys, values, there = state
        q, k, v = linear(x, w.weight_ih, w.bias_ih).chunk(3, dim=-1)
        keys, values = torch.cat([keys, k.unsqueeze(1)], dim=1), torch.cat([values, v.unsqueeze(1)], dim=1)
        there = torch.cat([there, torch.ones_like(there[:, :1])], dim=1)
        places = torch.arange(self.window, device=x.device)
        scores = (turned(self._divided(q.unsqueeze(1)), places[-1:]) * turned(self._divided(keys), places)).sum(-1)
        scores = scores / math.sqrt(q.shape[-1] // self.heads)
        shares = scores.masked_fill((there <= 0).unsqueeze(1), -math.inf).softmax(-1)
        y = (shares.unsqueeze(-1) * self._divided(values)).sum(-2).flatten(1)
        return linear(y, w.out_proj), keys[:, 1:], values[:, 1:], there[:, 1:]

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        _, keys, values, there = state
        steps, earlier = len(xs), self.window - 1
        q, k, v = input_products(w, xs).transpose(0, 1).chunk(3, dim=-1)
        keys, values = torch.cat([keys, k], dim=1), torch.cat([values, v], dim=1)
        there = torch.cat([there, there.new_ones(len(there), steps)], dim=1)
        places = torch.arange(earlier + steps, device=xs.device)
        lags = places[earlier:, None] - places
        seen = ((lags >= 0) & (lags <= earlier)) & (there > 0)[:, None, None]
        y = scaled_dot_product_attention(
            turned(self._divided(q), places[earlier:]), turned(self._divided(keys), places), self._divided(values), seen
        )
        outputs = matmul.linear(y.permute(2, 0, 1, 3).flatten(2), w.out_proj)
        return outputs, (outputs[-1].clone(), keys[:, steps:], values[:, steps:], there[:, steps:])

    def _divided(self, x: Tensor) -> Tensor:
        """[B, P, H] to [B, heads, P, d]."""
        return by_heads(x, self.heads).transpose(1, 2)


def turned(x: Tensor, positions: Tensor) -> Tensor:
    """R of each position [P] applied to x [..., P, d]; scores depend on differences of positions alone."""
    half = x.shape[-1] // 2
    rates = BASE ** (-torch.arange(half, dtype=x.dtype, device=x.device) / half)
    angles = positions.to(x.dtype).unsqueeze(-1) * rates
    cos, sin = angles.cos(), angles.sin()
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat([first * cos - second * sin, first * sin + second * cos, rest], dim=-1)
