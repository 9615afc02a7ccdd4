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

from elman import config
from elman.network import matmul
from elman.network.cells.cell import (
    Array,
    Cell,
    Gate,
    LayerState,
    Retention,
    Shape,
    Structured,
    Weights,
    block_of,
    input_products,
)
from elman.network.cells.heads import block_diagonal, convolve, convolve_step, inverse_softplus, kernel_of, width_of
from elman.network.cells.scan import scan

POWER = 8.0
"""c of the paper."""

STEEPEST = 1000.0
"""The largest slope of the square root."""


@torch.no_grad()
def fill(parameter: Tensor) -> None:
    """Lambda [1, H] such that exp(-8 softplus(Lambda)) is uniform in [0.9, 0.999]."""
    rate = -parameter.uniform_(0.9, 0.999).log() / POWER
    parameter.copy_(inverse_softplus(rate))


def bounded_root(x: Tensor) -> Tensor:
    """sqrt(x) for x >= 0, whose slope is `STEEPEST` at most: that of sqrt(x), or `STEEPEST` where it is greater."""
    least = 1 / (4 * STEEPEST**2)
    flat = x.detach()
    return torch.where(x < least, flat.sqrt() + STEEPEST * (x - flat), x.clamp(min=least).sqrt())


def gated(weights: Weights, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The factor a, its complement sqrt(1 - a^2), and i u, from u [..., H]."""
    assert weights.extra is not None
    (of_r, of_i), biases = weights.extra[2], weights.extra[3]
    r = (block_diagonal(u, of_r) + biases[0]).sigmoid()
    i = (block_diagonal(u, of_i) + biases[1]).sigmoid()
    log_a = -POWER * r * softplus(weights.hidden[0])
    return log_a.exp(), bounded_root(-torch.expm1(2 * log_a)), i * u


def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
    """Return h', s', 1 for a sequence that has begun, and the inputs that the convolution still reads."""
    _, s, begun, before = state
    assert weights.extra is not None
    kernel, bias, _, _, out, out_bias = weights.extra
    u, gate = linear(x, weights.input, weights.input_bias).chunk(2, dim=-1)
    u, before = convolve_step(u, before, kernel, bias)
    a, root, entering = gated(weights, u)
    s = a * s + torch.where(begun == 0, 1.0, root) * entering
    return linear(gelu(gate, approximate="tanh") * s, out, out_bias), s, torch.ones_like(begun), before


def sequence(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """The same over xs [T, B, I] by a scan."""
    _, s, begun, before = state
    assert weights.extra is not None
    kernel, bias, _, _, out, out_bias = weights.extra
    u, gate = input_products(weights, xs).chunk(2, dim=-1)
    u, before = convolve(u, before, kernel, bias)
    a, root, entering = gated(weights, u)
    first = torch.where(begun == 0, 1.0, root[0])
    states = scan(a, torch.cat([first.unsqueeze(0), root[1:]]) * entering, s)
    outputs = matmul.linear(gelu(gate, approximate="tanh") * states, out, out_bias)
    return outputs, (outputs[-1].clone(), states[-1].clone(), torch.ones_like(begun), before)


def _kept(weights: Weights) -> Retention:
    """The gate r reads the convolved inputs: a product for each of them, through the blocks of W_r."""
    assert weights.extra is not None
    kernel, shift, (of_r, _), (bias, _), _, _ = weights.extra
    of_u = block_of(weights, 0, len(kernel))
    blocks = torch.block_diag(*of_r)
    gates = [
        Gate(blocks @ (taps.unsqueeze(1) * of_u.weight), blocks @ (taps * of_u.bias)) for taps in kernel.t().flip(0)
    ]
    gates[0] = gates[0]._replace(bias=gates[0].bias + blocks @ shift + bias)
    rate = POWER * softplus(weights.hidden[0])
    return Retention(tuple(gates), lambda low, high: (-rate * low.sigmoid()).exp())  # noqa: ARG005


def build(record: config.RGLRU) -> Cell:
    """The cell of a recipe; a layer raises UserError where the heads do not divide it."""
    heads, kernel_size = record.heads, record.convolution

    def arrays(_: int, size: int) -> tuple[Array, ...]:
        d = width_of(size, heads, "rg-lru")
        return (
            kernel_of(size, kernel_size),
            Array((size,), config.Zeros()),
            Array((2, heads, d, d), config.Normal(std=1 / math.sqrt(d))),
            Array((2, size), config.Zeros()),
            Array((size, size), config.Normal(std=1 / math.sqrt(size))),
            Array((size,), config.Zeros()),
        )

    def memory(_: int, size: int) -> tuple[Shape, ...]:
        return (size,), (size,), (1,), (kernel_size - 1, size)

    return Cell(
        gates=0,
        slots=4,
        step=step,
        sequence=sequence,
        name="rg-lru",
        input_gates=2,
        extra=arrays,
        masks=None,
        structured=Structured(lambda size: (1, size), fill),
        memory=memory,
        retention=_kept,
    )
