"""The real-gated linear recurrent unit in its recurrent block (De et al. 2024, Griffin, sections 2.3 and 2.4).

    u = conv(W_u x + b)                                       each channel with a kernel of its own, causal
    r, i = sigm(W_r u + b_r), sigm(W_i u + b_i)               blocks on the diagonal, one a head
    log a = -8 r softplus(Lambda)                             (eq. 3: a = sigm(-Lambda) to the power 8 r)
    s' = a s + sqrt(1 - a^2) (i u)                            (eq. 4)
    h' = W_o (gelu(W_g x + b) s') + b_o

At the first step of a sequence i u enters whole, with a factor of 1 in place of the root; a number of the state marks
that there has been a step. As in the published code the slope of the root is bounded, by 1000. At first a^8 is
uniform in [0.9, 0.999] with r = 1.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import gelu, linear, softplus

from elman.config.initialisation import Normal, Zeros
from elman.config.record import Positive, Reach
from elman.network.cells.cell import Array, Cell, Gate, LayerState, Retention, Shape, Weights, block_of, input_products
from elman.network.cells.heads import block_diagonal, convolve, convolve_step, inverse_softplus, kernel_of, width_of
from elman.network.fast import matmul
from elman.network.fast.diagonal import scan

POWER = 8.0
"""c of the paper."""

STEEPEST = 1000.0
"""The largest slope of the square root."""


class RGLRU(Cell, frozen=True, tag="rg-lru"):
    """The block above, after a convolution over `convolution` inputs; W_r and W_i in blocks, one per head.

    `Lambda` [H]; `gate_weight` [2, heads, d, d] and `gate_bias` [2, H] of r and i; `conv_weight` [H, K] and `conv_bias`
    [H]; `out_weight` [H, H] and `out_bias` [H].
    """

    heads: Positive = 4
    convolution: Reach = 4
    masks = None
    input_gates = ("u", "g")

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        """The arrays above; raises UserError where the heads do not divide the layer."""
        d = width_of(size, self.heads, "rg-lru")
        return {
            "Lambda": Array((size,), _slow, recurrent=True),
            "conv_weight": kernel_of(size, self.convolution),
            "conv_bias": Array((size,), Zeros()),
            "gate_weight": Array((2, self.heads, d, d), Normal(std=1 / math.sqrt(d))),
            "gate_bias": Array((2, size), Zeros()),
            "out_weight": Array((size, size), Normal(std=1 / math.sqrt(size))),
            "out_bias": Array((size,), Zeros()),
        }

    def shapes(self, inputs: int, size: int) -> tuple[Shape, ...]:
        """h, s, 1 for a sequence that has begun, and the inputs that the convolution still reads."""
        return (size,), (size,), (1,), (self.convolution - 1, size)

    def step(self, w: Weights, x: Tensor, state: LayerState) -> LayerState:
        _, s, begun, before = state
        u, gate = linear(x, w.weight_ih, w.bias_ih).chunk(2, dim=-1)
        u, before = convolve_step(u, before, w.conv_weight, w.conv_bias)
        a, root, entering = _gated(w, u)
        s = a * s + torch.where(begun == 0, 1.0, root) * entering
        h = linear(gelu(gate, approximate="tanh") * s, w.out_weight, w.out_bias)
        return h, s, torch.ones_like(begun), before

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        _, s, begun, before = state
        u, gate = input_products(w, xs).chunk(2, dim=-1)
        u, before = convolve(u, before, w.conv_weight, w.conv_bias)
        a, root, entering = _gated(w, u)
        first = torch.where(begun == 0, 1.0, root[0])
        states = scan(a, torch.cat([first.unsqueeze(0), root[1:]]) * entering, s)
        outputs = matmul.linear(gelu(gate, approximate="tanh") * states, w.out_weight, w.out_bias)
        return outputs, (outputs[-1].clone(), states[-1].clone(), torch.ones_like(begun), before)

    def retention(self, w: Weights) -> Retention:
        """The gate r reads the convolved inputs: a product for each of them, through the blocks of W_r."""
        of_u = block_of(w, 0, len(w.conv_weight))
        blocks = torch.block_diag(*w.gate_weight[0])
        gates = [
            Gate(blocks @ (taps.unsqueeze(1) * of_u.weight), blocks @ (taps * of_u.bias))
            for taps in w.conv_weight.t().flip(0)
        ]
        gates[0] = gates[0]._replace(bias=gates[0].bias + blocks @ w.conv_bias + w.gate_bias[0])
        rate = POWER * softplus(w.Lambda)
        return Retention(tuple(gates), lambda low, high: (-rate * low.sigmoid()).exp())  # noqa: ARG005


def _slow(parameter: Tensor) -> None:
    """Lambda such that exp(-8 softplus(Lambda)) is uniform in [0.9, 0.999]."""
    rate = -parameter.uniform_(0.9, 0.999).log() / POWER
    parameter.copy_(inverse_softplus(rate))


def bounded_root(x: Tensor) -> Tensor:
    """sqrt(x) for x >= 0, whose slope counts as `STEEPEST` where it is greater."""
    least = 1 / (4 * STEEPEST**2)
    flat = x.detach()
    return torch.where(x < least, flat.sqrt() + STEEPEST * (x - flat), x.clamp(min=least).sqrt())


def _gated(w: Weights, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The factor a, its complement sqrt(1 - a^2), and i u, from u [..., H]."""
    (of_r, of_i), biases = w.gate_weight, w.gate_bias
    r = (block_diagonal(u, of_r) + biases[0]).sigmoid()
    i = (block_diagonal(u, of_i) + biases[1]).sigmoid()
    log_a = -POWER * r * softplus(w.Lambda)
    return log_a.exp(), bounded_root(-torch.expm1(2 * log_a)), i * u
