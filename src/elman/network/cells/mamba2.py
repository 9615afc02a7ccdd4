"""The mixer of Mamba-2: a state-space model whose transition is one number per head (Dao & Gu 2024).

    [x; z] = W x_in,  [B; C; d] = W' x_in,  [x; B; C] := silu(conv([x; B; C]))         causal, each channel its own
    D = softplus(d + bias),  S' = exp(-D exp(A)) S + B (D x)',  y = C S' + s x         (eqs 1-2 with scalar A per head)
    h' = W_o (rmsnorm(y * silu(z)))

x and z have `expand` times the width of the layer and are split into heads; B and C, of `states` numbers, are shared by
all heads. At first exp(A) is uniform in [1, 16] and D, without an input, log-uniform in [0.001, 0.1].
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import linear, silu, softplus

from elman.config.initialisation import Normal, Zeros
from elman.config.record import Depth, Positive, Reach
from elman.network.cells.cell import Array, Cell, Gate, LayerState, Retention, Shape, Weights, input_products
from elman.network.cells.heads import (
    by_heads,
    convolve,
    convolve_step,
    first_rates,
    first_steps,
    kernel_of,
    root_mean_square_norm,
    width_of,
)
from elman.network.fast import chunked, matmul


class Mamba2(Cell, frozen=True, tag="mamba2"):
    """The mixer above; `states` rows of each head's memory, inner width `expand` times the width of the layer.

    `dt_bias`, `A_log` and `D`, the factor s, [heads]; `bcdt_proj` [2 states + heads, I] is W'; `conv_weight` [C, K] and
    `conv_bias` [C] of the channels of [x; B; C]; `norm_weight` [expand H]; `out_proj` [H, expand H].
    """

    heads: Positive = 4
    states: Positive = 16
    expand: Depth = 2
    convolution: Reach = 4
    masks = None

    @property
    def input_gates(self) -> tuple[str, ...]:
        """The blocks of x, then of z."""
        return ("x",) * self.expand + ("z",) * self.expand

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        """The arrays above; raises UserError where the heads do not divide the inner width."""
        inner = self.expand * size
        width_of(inner, self.heads, "mamba2")
        channels = inner + 2 * self.states
        return {
            "dt_bias": Array((self.heads,), first_steps, recurrent=True),
            "A_log": Array((self.heads,), first_rates, recurrent=True),
            "D": Array((self.heads,), torch.nn.init.ones_, recurrent=True),
            "bcdt_proj": Array((2 * self.states + self.heads, inputs)),
            "conv_weight": kernel_of(channels, self.convolution),
            "conv_bias": Array((channels,), Zeros()),
            "norm_weight": Array((inner,), torch.nn.init.ones_),
            "out_proj": Array((size, inner), Normal(std=1 / math.sqrt(inner))),
        }

    def shapes(self, inputs: int, size: int) -> tuple[Shape, ...]:
        """h, S, and the inputs that the convolution still reads."""
        inner = self.expand * size
        return (
            (size,),
            (self.heads, self.states, inner // self.heads),
            (self.convolution - 1, inner + 2 * self.states),
        )

    def step(self, w: Weights, x: Tensor, state: LayerState) -> LayerState:
        _, S, before = state
        u, z = linear(x, w.weight_ih, w.bias_ih).chunk(2, dim=-1)
        bc, d = linear(x, w.bcdt_proj).split((2 * self.states, self.heads), dim=-1)
        mixed, before = convolve_step(torch.cat([u, bc], dim=-1), before, w.conv_weight, w.conv_bias)
        u, b, c, delta, log_a = self._divided(w, mixed, d)
        entering = b[:, None, :, None] * (delta.unsqueeze(-1) * u).unsqueeze(-2)
        S = log_a.exp()[..., None, None] * S + entering
        y = (c[:, None, :, None] * S).sum(-2)
        return linear(_written(w, y, u, z), w.out_proj), S, before

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        _, S, before = state
        u, z = input_products(w, xs).chunk(2, dim=-1)
        bc, d = input_products(w, xs, w.bcdt_proj).split((2 * self.states, self.heads), dim=-1)
        mixed, before = convolve(torch.cat([u, bc], dim=-1), before, w.conv_weight, w.conv_bias)
        u, b, c, delta, log_a = self._divided(w, mixed, d)
        b, c = (part.unsqueeze(2).expand(-1, -1, self.heads, -1) for part in (b, c))
        y, S = chunked.scan(c, b, delta.unsqueeze(-1) * u, log_a.unsqueeze(-1), S)
        outputs = matmul.linear(_written(w, y, u, z), w.out_proj)
        return outputs, (outputs[-1].clone(), S, before)

    def retention(self, w: Weights) -> Retention:
        """exp(-D A) of each head, with the least D."""
        rate = w.A_log.exp()
        gate = Gate(w.bcdt_proj[2 * self.states :], w.dt_bias)
        return Retention((gate,), lambda low, high: (-rate * softplus(low)).exp())  # noqa: ARG005

    def _divided(self, w: Weights, mixed: Tensor, d: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return x [..., heads, _], B and C [..., n], D and -D exp(A) [..., heads]."""
        n = self.states
        x, b, c = silu(mixed).split((mixed.shape[-1] - 2 * n, n, n), dim=-1)
        step = softplus(d + w.dt_bias)
        return by_heads(x, self.heads), b, c, step, -step * w.A_log.exp()


def _written(w: Weights, y: Tensor, x: Tensor, z: Tensor) -> Tensor:
    y = (y + w.D.unsqueeze(-1) * x).flatten(-2)
    return root_mean_square_norm(y * silu(z), w.norm_weight)
