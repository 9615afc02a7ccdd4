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
    width_of,
)


@torch.no_grad()
def fill(hidden: Tensor) -> None:
    """The bias of D, A, and the factor s of the skip connection, [3, heads]."""
    hidden[0] = first_steps(hidden[0])
    hidden[1] = first_rates(hidden[1])
    hidden[2] = 1.0


def build(record: config.Mamba2) -> Cell:
    """The cell of a recipe; a layer raises UserError where the heads do not divide `expand` times its width."""
    heads, n, expand, kernel_size = record.heads, record.states, record.expand, record.convolution

    def divided(weights: Weights, mixed: Tensor, d: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return x [..., heads, _], B and C [..., n], D and -D exp(A) [..., heads]."""
        x, b, c = silu(mixed).split((mixed.shape[-1] - 2 * n, n, n), dim=-1)
        step = softplus(d + weights.hidden[0])
        return by_heads(x, heads), b, c, step, -step * weights.hidden[1].exp()

    def written(weights: Weights, y: Tensor, x: Tensor, z: Tensor) -> Tensor:
        assert weights.extra is not None
        y = (y + weights.hidden[2].unsqueeze(-1) * x).flatten(-2)
        return root_mean_square_norm(y * silu(z), weights.extra[3])

    def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
        _, S, before = state
        assert weights.extra is not None
        of_input, kernel, bias, _, out = weights.extra
        u, z = linear(x, weights.input, weights.input_bias).chunk(2, dim=-1)
        bc, d = linear(x, of_input).split((2 * n, heads), dim=-1)
        mixed, before = convolve_step(torch.cat([u, bc], dim=-1), before, kernel, bias)
        u, b, c, delta, log_a = divided(weights, mixed, d)
        entering = b[:, None, :, None] * (delta.unsqueeze(-1) * u).unsqueeze(-2)
        S = log_a.exp()[..., None, None] * S + entering
        y = (c[:, None, :, None] * S).sum(-2)
        return linear(written(weights, y, u, z), out), S, before

    def sequence(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        _, S, before = state
        assert weights.extra is not None
        of_input, kernel, bias, _, out = weights.extra
        u, z = input_products(weights, xs).chunk(2, dim=-1)
        bc, d = product_of_inputs(weights, xs, of_input).split((2 * n, heads), dim=-1)
        mixed, before = convolve(torch.cat([u, bc], dim=-1), before, kernel, bias)
        u, b, c, delta, log_a = divided(weights, mixed, d)
        b, c = (part.unsqueeze(2).expand(-1, -1, heads, -1) for part in (b, c))
        y, S = chunked(c, b, delta.unsqueeze(-1) * u, log_a.unsqueeze(-1), S)
        outputs = matmul.linear(written(weights, y, u, z), out)
        return outputs, (outputs[-1].clone(), S, before)

    def kept(weights: Weights) -> Retention:
        """exp(-D A) of each head, with the least D."""
        assert weights.extra is not None
        bias, rate = weights.hidden[0], weights.hidden[1].exp()
        gate = Gate(weights.extra[0][2 * n :], bias)
        return Retention((gate,), lambda low, high: (-rate * softplus(low)).exp())  # noqa: ARG005

    def arrays(inputs: int, size: int) -> tuple[Array, ...]:
        inner = expand * size
        width_of(inner, heads, "mamba2")
        channels = inner + 2 * n
        return (
            Array((2 * n + heads, inputs)),
            kernel_of(channels, kernel_size),
            Array((channels,), config.Zeros()),
            Array((inner,), torch.nn.init.ones_),
            Array((size, inner), config.Normal(std=1 / math.sqrt(inner))),
        )

    def memory(_: int, size: int) -> tuple[Shape, ...]:
        inner = expand * size
        return (size,), (heads, n, inner // heads), (kernel_size - 1, inner + 2 * n)

    return Cell(
        gates=0,
        slots=3,
        step=step,
        sequence=sequence,
        name="mamba2",
        input_gates=2 * expand,
        extra=arrays,
        masks=None,
        structured=Structured(lambda _: (3, heads), fill),
        memory=memory,
        retention=kept,
    )
