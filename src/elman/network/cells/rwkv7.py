"""The time mixing of RWKV-7 (Peng et al. 2025, section 4.1): a transition that is diagonal plus a matrix of rank one.

    x_j = x + mu_j (x_before - x)  for j in r, w, k, v, a, g                        each projection has its own mean
    r, k, v = W x_r, W x_k, W x_v             w = exp(-e^{-1/2} sigm(d + V tanh(U x_w)))
    a = sigm(a_0 + V U x_a)                   g = V sigm(U x_g)
    K = unit(k xi),  k~ = k (1 + (a - 1) alpha)                                     unit length in each head
    S' = (diag(w) - (a K) K') S + k~ v'       S [d, d] per head
    h' = W_o (g * (norm(S'' r) + (r rho k~) v))                                     norm: per head, shift and scale

The bonus in the last line reads k~, as the published code does. The value residual, a mean of v and the first layer's
v, is left out: a cell sees its own layer only. The squared-ReLU channel mixing of the paper is
left to the core.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, linear, normalize

from elman.config.initialisation import Normal, Zeros
from elman.config.record import Positive
from elman.network.cells.cell import Array, Cell, LayerState, Shape, Weights, input_products
from elman.network.cells.heads import by_heads, filled, width_of
from elman.network.fast import chunked, matmul

Product: TypeAlias = Callable[..., Tensor]
"""(x, weight, bias) -> x weight^T + bias."""

SLOWEST = math.exp(-0.5)
"""-log w is at most this."""

EPSILON = 64e-5
"""Of the norm of each head, as in the published code for heads of 64."""


class RWKV7(Cell, frozen=True, tag="rwkv7"):
    """The time mixing above; the maps to decay, rate and output gate have a `rank`.

    `mix` [6, I] holds the means mu of r, w, k, v, a, g; `k_k`, `k_a`, `r_k` [H] are xi, alpha and rho; `w1`, `w2`, `w0`
    are U, V and d of the decay, `a1`, `a2`, `a0` of the rate, `g1`, `g2` of the output gate, as in the published code;
    `ln_weight` and `ln_bias` [H]; `out_proj` [H, H].
    """

    heads: Positive = 4
    rank: Positive = 16
    masks = None
    input_gates = ("r", "k", "v")

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        """The arrays above; raises UserError where the heads do not divide the layer."""
        width_of(size, self.heads, "rwkv7")
        into = Array((self.rank, inputs))
        out = Array((size, self.rank), Normal(std=0.1 / math.sqrt(self.rank)))
        return {
            "k_k": Array((size,), filled(0.85), recurrent=True),
            "k_a": Array((size,), filled(1.0), recurrent=True),
            "r_k": Array((size,), filled(0.0), recurrent=True),
            # From 1, the input before alone, in the first channel to 0, the present one, in the last.
            "mix": Array((6, inputs), lambda means: means.copy_(torch.linspace(1, 0, inputs).expand_as(means))),
            "w1": into,
            "w2": out,
            "w0": Array((size,), lambda bias: bias.copy_(torch.linspace(-6, -1, size))),  # decays of 0.998 to 0.85
            "a1": into,
            "a2": out,
            "a0": Array((size,), Zeros()),
            "g1": into,
            "g2": Array((size, self.rank), Normal(std=1 / math.sqrt(self.rank))),
            "ln_weight": Array((size,), filled(1.0)),
            "ln_bias": Array((size,), Zeros()),
            "out_proj": Array((size, size), Normal(std=1 / math.sqrt(size))),
        }

    def shapes(self, inputs: int, size: int) -> tuple[Shape, ...]:
        """h, the input before, and S."""
        d = size // self.heads
        return (size,), (inputs,), (self.heads, d, d)

    def step(self, w: Weights, x: Tensor, state: LayerState) -> LayerState:
        _, before, S = state
        r, k, v, log_w, direction, a, g = self._project(w, x, before, linear)
        removed = (direction.unsqueeze(-1) * S).sum(-2, keepdim=True)
        S = log_w.exp().unsqueeze(-1) * S - (a * direction).unsqueeze(-1) * removed + k.unsqueeze(-1) * v.unsqueeze(-2)
        y = (r.unsqueeze(-1) * S).sum(-2)
        return linear(self._written(w, y, r, k, v, g), w.out_proj), x, S

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        _, before, S = state
        lagged = torch.cat([before.unsqueeze(0), xs[:-1]])
        r, k, v, log_w, direction, a, g = self._project(w, xs, lagged, partial(input_products, w))
        y, S = chunked.scan(r, k, v, log_w, S, (-direction, a * direction))
        outputs = matmul.linear(self._written(w, y, r, k, v, g), w.out_proj)
        return outputs, (outputs[-1].clone(), xs[-1].clone(), S)

    def _project(self, w: Weights, x: Tensor, before: Tensor, product: Product) -> tuple[Tensor, ...]:
        """Return r, k~, v, log w, K, a and g of x [..., I] after `before`; all but g by heads."""
        x_r, x_w, x_k, x_v, x_a, x_g = (torch.lerp(x, before, mean) for mean in w.mix)
        biases = (None,) * 3 if w.bias_ih is None else w.bias_ih.chunk(3)
        r, k, v = (
            product(part, matrix, bias)
            for part, matrix, bias in zip((x_r, x_k, x_v), w.weight_ih.chunk(3), biases, strict=True)
        )
        log_w = -SLOWEST * product(product(x_w, w.w1).tanh(), w.w2, w.w0).sigmoid()
        a = product(product(x_a, w.a1), w.a2, w.a0).sigmoid()
        g = product(product(x_g, w.g1).sigmoid(), w.g2)
        direction = normalize(by_heads(k * w.k_k, self.heads), dim=-1)
        k = k * (1 + (a - 1) * w.k_a)
        r, k, v, log_w, a = (by_heads(part, self.heads) for part in (r, k, v, log_w, a))
        return r, k, v, log_w, direction, a, g

    def _written(self, w: Weights, y: Tensor, r: Tensor, k: Tensor, v: Tensor, g: Tensor) -> Tensor:
        bonus = (r * by_heads(w.r_k, self.heads) * k).sum(-1, keepdim=True) * v
        normed = layer_norm(y, y.shape[-1:], eps=EPSILON).flatten(-2)
        return g * (normed * w.ln_weight + w.ln_bias + bonus.flatten(-2))
