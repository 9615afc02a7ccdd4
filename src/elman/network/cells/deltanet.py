"""The gated delta rule: a memory that decays, and is corrected at a key (Yang, Kautz & Hatamizadeh 2024).

    q, k, v = silu(conv(W x)),  |q| = |k| = 1              beta = sigm(W_b x)        g = -exp(A) softplus(W_a x + b)
    S := exp(g) S,   S' = S + beta k (v - S' k)'            S [d, d] per head        y = S'' q / sqrt(d)
    h' = W_o (rmsnorm(y) * silu(W_g x))

Without the gate (g = 0) it is DeltaNet (Yang, Wang, Zhang, Shen & Kim 2024). With `negative_eigenvalues` beta is twice
as large, so that the transition I - beta k k' may turn a direction round (Grazzi et al. 2024).
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import linear, silu, softplus

from elman.config.initialisation import Normal
from elman.config.record import Positive, Reach
from elman.network.cells.cell import Array, Cell, Gate, LayerState, Retention, Shape, Weights, input_products
from elman.network.cells.heads import (
    by_heads,
    convolve,
    convolve_step,
    first_rates,
    first_steps,
    kernel_of,
    root_mean_square_norm,
    unit,
    width_of,
)
from elman.network.fast import chunked, matmul


class DeltaNet(Cell, frozen=True, tag="deltanet"):
    """The delta rule above, `gated` by a decay; `negative_eigenvalues`: beta up to 2.

    `A_log` and `dt_bias` [heads] are A and b; `ba_proj` [heads or 2 heads, I] is W_b, and W_a below it; `conv_weight`
    [3H, K]; `norm_weight` [d]; `out_proj` [H, H].
    """

    heads: Positive = 4
    gated: bool = True
    negative_eigenvalues: bool = False
    convolution: Reach = 4
    masks = None
    input_gates = ("q", "k", "v", "g")

    @property
    def linear(self) -> bool:
        """The transition without the gate has no factor below 1."""
        return self.gated

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        """The arrays above; raises UserError where the heads do not divide the layer."""
        d = width_of(size, self.heads, "deltanet")
        gate = {
            "A_log": Array((self.heads,), first_rates, recurrent=True),
            "dt_bias": Array((self.heads,), first_steps, recurrent=True),
        }
        return (gate if self.gated else {}) | {
            "ba_proj": Array(((1 + self.gated) * self.heads, inputs)),
            "conv_weight": kernel_of(3 * size, self.convolution),
            "norm_weight": Array((d,), torch.nn.init.ones_),
            "out_proj": Array((size, size), Normal(std=1 / math.sqrt(size))),
        }

    def shapes(self, inputs: int, size: int) -> tuple[Shape, ...]:
        """h, S, and the inputs that the convolution still reads."""
        d = size // self.heads
        return (size,), (self.heads, d, d), (self.convolution - 1, 3 * size)

    def step(self, w: Weights, x: Tensor, state: LayerState) -> LayerState:
        _, S, before = state
        mixed, gate = _divide(linear(x, w.weight_ih, w.bias_ih))
        mixed, before = convolve_step(mixed, before, w.conv_weight)
        q, k, v = self._divided(mixed)
        beta, g = self._gates(w, linear(x, w.ba_proj))
        S = g.exp()[..., None, None] * S
        corrected = beta.unsqueeze(-1) * (v - (k.unsqueeze(-1) * S).sum(-2))
        S = S + k.unsqueeze(-1) * corrected.unsqueeze(-2)
        y = (q.unsqueeze(-1) * S).sum(-2)
        return linear(_written(w, y, gate), w.out_proj), S, before

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        _, S, before = state
        mixed, gate = _divide(input_products(w, xs))
        mixed, before = convolve(mixed, before, w.conv_weight)
        q, k, v = self._divided(mixed)
        beta, g = (part.unsqueeze(-1) for part in self._gates(w, input_products(w, xs, w.ba_proj)))
        y, S = chunked.scan(q, beta * k, v, g, S, (k, -beta * g.exp() * k))
        outputs = matmul.linear(_written(w, y, gate), w.out_proj)
        return outputs, (outputs[-1].clone(), S, before)

    def retention(self, w: Weights) -> Retention | None:
        """exp(g) of each head; the matrix I - beta k k', its other factor, has no norm above 1."""
        if not self.gated:
            return None
        gate = Gate(w.ba_proj[self.heads :], w.dt_bias)
        return Retention((gate,), lambda low, high: (-w.A_log.exp() * softplus(low)).exp())  # noqa: ARG005

    def _divided(self, mixed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = (by_heads(part, self.heads) for part in silu(mixed).chunk(3, dim=-1))
        return unit(q) / math.sqrt(q.shape[-1]), unit(k), v

    def _gates(self, w: Weights, sums: Tensor) -> tuple[Tensor, Tensor]:
        """Return beta and g, [..., heads], from the sums of both."""
        most = 2.0 if self.negative_eigenvalues else 1.0
        if not self.gated:
            return most * sums.sigmoid(), torch.zeros_like(sums)
        of_beta, of_g = sums.chunk(2, dim=-1)
        return most * of_beta.sigmoid(), -w.A_log.exp() * softplus(of_g + w.dt_bias)


def _written(w: Weights, y: Tensor, gate: Tensor) -> Tensor:
    return root_mean_square_norm(y, w.norm_weight).flatten(-2) * silu(gate)


def _divide(sums: Tensor) -> tuple[Tensor, Tensor]:
    """The channels of q, k and v together, and of the output gate."""
    size = sums.shape[-1] // 4
    mixed, gate = sums.split((3 * size, size), dim=-1)
    return mixed, gate
