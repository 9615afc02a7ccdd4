"""sLSTM and mLSTM, the two cells of the extended LSTM (Beck et al. 2024), with the state m that stabilises them.

The gates i and, if so chosen, f are exponential. m is a running maximum of their logarithms:

    m' = max(log f + m, i)          f' = exp(log f + m - m')          i' = exp(i - m')       (eqs 15-17)

    sLSTM  c' = f' c + i' tanh(z),  n' = f' n + i',  h' = sigm(o) c' / n'                    (eqs 8-14)
           with the sums W x + R h + b of each gate, R in blocks, one a head
    mLSTM  C' = f' C + i' k v',  n' = f' n + i' k,  h' = sigm(o) * (C'' q / max(|n' q|, exp(-m')))   (eqs 19-27)
           with k scaled by d^-1/2, and gates i, f of the input alone, one of each a head

No output depends on m in exact arithmetic. At the first step of the sLSTM, where n = 0, m' = i. With `head_norm` the
output of each head of the mLSTM is normalised before the output gate, and with a `convolution` its q and k are products
of silu(conv(x)) in the place of x, as in the blocks of the paper.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, linear, logsigmoid, silu

from elman import config
from elman.network.cells import fast_slstm
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
    step_of,
)
from elman.network.cells.chunked import chunked
from elman.network.cells.heads import block_diagonal, by_heads, convolve, convolve_step, kernel_of, width_of


def build_slstm(record: config.SLSTM) -> Cell:
    """The sLSTM of a recipe; gates in the order i, f, z, o. A layer raises UserError where heads do not divide it."""
    heads, exponential = record.heads, record.forget == "exponential"

    def driven(weights: Weights, drive: Tensor, state: LayerState) -> LayerState:
        h, c, n, m = state
        blocks = weights.hidden.view(4, heads, -1, weights.hidden.shape[1])
        recurrent = torch.cat([block_diagonal(h, block) for block in blocks], dim=-1)
        sums = drive + (recurrent if weights.hidden_bias is None else recurrent + weights.hidden_bias)
        i, f, z, o = sums.chunk(4, dim=-1)
        kept = torch.where(n == 0, i, (f if exponential else logsigmoid(f)) + m)
        m = torch.maximum(kept, i)
        keep, enter = (kept - m).exp(), (i - m).exp()
        c, n = keep * c + enter * z.tanh(), keep * n + enter
        return o.sigmoid() * c / n, c, n, m

    @torch.no_grad()
    def fill(hidden: Tensor) -> None:
        bound = 1 / math.sqrt(hidden.shape[1])
        hidden.uniform_(-bound, bound)

    return Cell(
        gates=4,
        slots=4,
        step=step_of(driven),
        sequence=fast_slstm.slstm(heads, exponential),
        name="slstm",
        candidate=2,
        keeps=((1, 1),),
        structured=Structured(lambda size: (4 * size, width_of(size, heads, "slstm")), fill),
        memory=lambda _, size: ((size,),) * 4,
    )


Convolution: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
Product: TypeAlias = Callable[[Weights, Tensor], Tensor]


def _product(weights: Weights, x: Tensor) -> Tensor:
    return linear(x, weights.input, weights.input_bias)


def build_mlstm(record: config.MLSTM) -> Cell:
    """The mLSTM of a recipe; blocks in the order q, k, v, o. A layer raises UserError where heads do not divide it."""
    heads, kernel_size = record.heads, record.convolution

    def products(
        weights: Weights, x: Tensor, before: Sequence[Tensor], convolution: Convolution, product: Product
    ) -> tuple[tuple[Tensor, Tensor, Tensor, Tensor], LayerState]:
        """q, k, v and the output gate, and what a convolution leaves; it is there if there are inputs `before`."""
        if not before:
            return divided(product(weights, x)), ()
        assert weights.extra is not None
        convolved, held = convolution(x, *before, *weights.extra[-2:])
        half = len(weights.input) // 2
        biases = (None, None) if weights.input_bias is None else weights.input_bias.split(half)
        halves = [
            weights._replace(input=rows, input_bias=bias)
            for rows, bias in zip(weights.input.split(half), biases, strict=True)
        ]
        return divided(torch.cat([product(halves[0], silu(convolved)), product(halves[1], x)], dim=-1)), (held,)

    def divided(sums: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        q, k, v, o = sums.chunk(4, dim=-1)
        k = by_heads(k, heads)
        return by_heads(q, heads), k / math.sqrt(k.shape[-1]), by_heads(v, heads), o.sigmoid()

    def read(weights: Weights, numerator: Tensor, inner: Tensor, m: Tensor, gate: Tensor) -> Tensor:
        """The output from C q, n q and m; both sides of the fraction are scaled so that neither overflows."""
        low = m.clamp(max=0).exp()
        divisor = torch.maximum(low * inner.abs(), (-m.clamp(min=0)).exp())
        h = low.unsqueeze(-1) * numerator / divisor.unsqueeze(-1)
        if record.head_norm:
            assert weights.extra is not None
            h = layer_norm(h, h.shape[-1:]) * by_heads(weights.extra[2], heads)
        return gate * h.flatten(-2)

    def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
        _, C, n, m, *before = state
        assert weights.extra is not None
        (q, k, v, gate), held = products(weights, x, before, convolve_step, _product)
        i, f = linear(x, weights.extra[0], weights.extra[1]).chunk(2, dim=-1)
        kept = logsigmoid(f) + m
        m = torch.maximum(kept, i)
        keep, enter = (kept - m).exp().unsqueeze(-1), (i - m).exp().unsqueeze(-1)
        C = keep.unsqueeze(-1) * C + (enter * k).unsqueeze(-1) * v.unsqueeze(-2)
        n = keep * n + enter * k
        numerator = (q.unsqueeze(-1) * C).sum(-2)
        return read(weights, numerator, (n * q).sum(-1), m, gate), C, n, m, *held

    def sequence(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        _, C, n, m, *before = state
        assert weights.extra is not None
        (q, k, v, gate), held = products(weights, xs, before, convolve, input_products)
        i, f = product_of_inputs(weights, xs, weights.extra[0], weights.extra[1]).chunk(2, dim=-1)
        log_f = logsigmoid(f)
        sums = log_f.cumsum(0)
        highest = sums + torch.maximum((i - sums).cummax(0).values, m)
        decay = log_f + torch.cat([m.unsqueeze(0), highest[:-1]]) - highest
        k = (i - highest).exp().unsqueeze(-1) * k
        v = torch.cat([v, v.new_ones(*v.shape[:-1], 1)], dim=-1)
        y, after = chunked(q, k, v, decay.unsqueeze(-1), torch.cat([C, n.unsqueeze(-1)], dim=-1))
        outputs = read(weights, y[..., :-1], y[..., -1], highest, gate)
        return outputs, (outputs[-1].clone(), after[..., :-1], after[..., -1], highest[-1].clone(), *held)

    @torch.no_grad()
    def gate_biases(bias: Tensor) -> None:
        bias[:heads].normal_(0, 0.1)
        bias[heads:] = torch.linspace(3, 6, heads)

    def kept(weights: Weights) -> Retention:
        """The forget gate of each head: the factor of C and n before they are scaled by e^-m."""
        assert weights.extra is not None
        return Retention((Gate(weights.extra[0][heads:], weights.extra[1][heads:]),), lambda low, high: high.sigmoid())  # noqa: ARG005

    def arrays(inputs: int, size: int) -> tuple[Array, ...]:
        width_of(size, heads, "mlstm")
        found = [Array((2 * heads, inputs), config.Zeros()), Array((2 * heads,), gate_biases)]
        if record.head_norm:
            found.append(Array((size,), torch.nn.init.ones_))
        if kernel_size is not None:
            found += [kernel_of(inputs, kernel_size), Array((inputs,), config.Zeros())]
        return tuple(found)

    def memory(inputs: int, size: int) -> tuple[Shape, ...]:
        d = size // heads
        held = () if kernel_size is None else ((kernel_size - 1, inputs),)
        return (size,), (heads, d, d), (heads, d), (heads,), *held

    return Cell(
        gates=0,
        slots=4 if kernel_size is None else 5,
        step=step,
        sequence=sequence,
        name="mlstm",
        input_gates=4,
        extra=arrays,
        masks=None,
        memory=memory,
        retention=kept,
    )
