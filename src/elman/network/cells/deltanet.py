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
    input_products,
    product_of_inputs,
)
from elman.network.cells.chunked import chunked
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


@torch.no_grad()
def fill(hidden: Tensor) -> None:
    """A and b, [2, heads]: exp(A) uniform in [1, 16], softplus(b) log-uniform in [0.001, 0.1]."""
    hidden[0] = first_rates(hidden[0])
    hidden[1] = first_steps(hidden[1])


def build(record: config.DeltaNet) -> Cell:
    """The cell of a recipe; a layer raises UserError where the heads do not divide it."""
    heads, kernel_size, gated = record.heads, record.convolution, record.gated
    most = 2.0 if record.negative_eigenvalues else 1.0

    def divided(mixed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = (by_heads(part, heads) for part in silu(mixed).chunk(3, dim=-1))
        return unit(q) / math.sqrt(q.shape[-1]), unit(k), v

    def gates(weights: Weights, sums: Tensor) -> tuple[Tensor, Tensor]:
        """Return beta and g, [..., heads], from the sums of both."""
        if not gated:
            return most * sums.sigmoid(), torch.zeros_like(sums)
        of_beta, of_g = sums.chunk(2, dim=-1)
        rate, bias = weights.hidden
        return most * of_beta.sigmoid(), -rate.exp() * softplus(of_g + bias)

    def written(weights: Weights, y: Tensor, gate: Tensor) -> Tensor:
        assert weights.extra is not None
        return root_mean_square_norm(y, weights.extra[2]).flatten(-2) * silu(gate)

    def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
        _, S, before = state
        assert weights.extra is not None
        of_gates, kernel, _, out = weights.extra
        mixed, gate = _divide(linear(x, weights.input, weights.input_bias))
        mixed, before = convolve_step(mixed, before, kernel)
        q, k, v = divided(mixed)
        beta, g = gates(weights, linear(x, of_gates))
        S = g.exp()[..., None, None] * S
        corrected = beta.unsqueeze(-1) * (v - (k.unsqueeze(-1) * S).sum(-2))
        S = S + k.unsqueeze(-1) * corrected.unsqueeze(-2)
        y = (q.unsqueeze(-1) * S).sum(-2)
        return linear(written(weights, y, gate), out), S, before

    def sequence(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        _, S, before = state
        assert weights.extra is not None
        of_gates, kernel, _, out = weights.extra
        mixed, gate = _divide(input_products(weights, xs))
        mixed, before = convolve(mixed, before, kernel)
        q, k, v = divided(mixed)
        beta, g = (part.unsqueeze(-1) for part in gates(weights, product_of_inputs(weights, xs, of_gates)))
        y, S = chunked(q, beta * k, v, g, S, (k, -beta * g.exp() * k))
        outputs = matmul.linear(written(weights, y, gate), out)
        return outputs, (outputs[-1].clone(), S, before)

    def kept(weights: Weights) -> Retention:
        """exp(g) of each head; the matrix I - beta k k' beside it has no norm above 1."""
        assert weights.extra is not None
        rate, bias = weights.hidden
        gate = Gate(weights.extra[0][heads:], bias)
        return Retention((gate,), lambda low, high: (-rate.exp() * softplus(low)).exp())  # noqa: ARG005

    def arrays(inputs: int, size: int) -> tuple[Array, ...]:
        d = width_of(size, heads, "deltanet")
        return (
            Array(((1 + gated) * heads, inputs)),
            kernel_of(3 * size, kernel_size),
            Array((d,), torch.nn.init.ones_),
            Array((size, size), config.Normal(std=1 / math.sqrt(size))),
        )

    def memory(_: int, size: int) -> tuple[Shape, ...]:
        d = size // heads
        return (size,), (heads, d, d), (kernel_size - 1, 3 * size)

    return Cell(
        gates=0,
        slots=3,
        step=step,
        sequence=sequence,
        name="deltanet",
        input_gates=4,
        extra=arrays,
        masks=None,
        structured=Structured(lambda _: (2, heads), fill) if gated else None,
        memory=memory,
        retention=kept if gated else None,
    )


def _divide(sums: Tensor) -> tuple[Tensor, Tensor]:
    """The channels of q, k and v together, and those of the output gate."""
    size = sums.shape[-1] // 4
    mixed, gate = sums.split((3 * size, size), dim=-1)
    return mixed, gate
