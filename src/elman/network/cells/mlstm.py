"""mLSTM of the extended LSTM (Beck et al. 2024): a matrix memory, with the state m that stabilises its gates.

    m' = max(log f + m, i)          f' = exp(log f + m - m')          i' = exp(i - m')       (eqs 15-17)
    C' = f' C + i' k v',  n' = f' n + i' k,  h' = sigm(o) * (C'' q / max(|n' q|, exp(-m')))  (eqs 19-27)

with k scaled by d^-1/2, and gates i, f of the input alone, one of each per head. No output depends on m in exact
arithmetic. With `head_norm` the output of each head is normalised before the output gate, and with a `convolution` q
and k are products of silu(conv(x)) in the place of x, as in the blocks of the paper.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, linear, logsigmoid, silu

from elman.config.initialisation import Zeros
from elman.config.record import Positive, Reach
from elman.network.cells.cell import Array, Cell, Gate, LayerState, Retention, Shape, Weights, input_products
from elman.network.cells.heads import by_heads, convolve, convolve_step, kernel_of, width_of
from elman.network.fast import chunked

Convolution: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
Product: TypeAlias = Callable[..., Tensor]


class MLSTM(Cell, frozen=True, tag="mlstm"):
    """The cell above; queries and keys see a convolution over `convolution` inputs, or the present input alone.

    `if_weight` [2 heads, I] and `if_bias` [2 heads] of i and f; `norm_weight` [H]; `conv_weight` [I, K], `conv_bias`.
    """

    heads: Positive = 4
    head_norm: bool = True
    convolution: Reach | None = None
    masks = None
    input_gates = ("q", "k", "v", "o")

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        """The arrays above; raises UserError where the heads do not divide the layer."""
        width_of(size, self.heads, "mlstm")
        found = {
            "if_weight": Array((2 * self.heads, inputs), Zeros()),
            "if_bias": Array((2 * self.heads,), self._gate_biases),
        }
        if self.head_norm:
            found["norm_weight"] = Array((size,), torch.nn.init.ones_)
        if self.convolution is not None:
            found["conv_weight"] = kernel_of(inputs, self.convolution)
            found["conv_bias"] = Array((inputs,), Zeros())
        return found

    def shapes(self, inputs: int, size: int) -> tuple[Shape, ...]:
        """h, C, n, m, and the inputs that the convolution still reads."""
        d = size // self.heads
        held = () if self.convolution is None else ((self.convolution - 1, inputs),)
        return (size,), (self.heads, d, d), (self.heads, d), (self.heads,), *held

    def step(self, w: Weights, x: Tensor, state: LayerState) -> LayerState:
        _, C, n, m, *before = state
        (q, k, v, gate), held = self._products(w, x, before, convolve_step, linear)
        i, f = linear(x, w.if_weight, w.if_bias).chunk(2, dim=-1)
        kept = logsigmoid(f) + m
        m = torch.maximum(kept, i)
        keep, enter = (kept - m).exp().unsqueeze(-1), (i - m).exp().unsqueeze(-1)
        C = keep.unsqueeze(-1) * C + (enter * k).unsqueeze(-1) * v.unsqueeze(-2)
        n = keep * n + enter * k
        numerator = (q.unsqueeze(-1) * C).sum(-2)
        return self._read(w, numerator, (n * q).sum(-1), m, gate), C, n, m, *held

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        _, C, n, m, *before = state
        (q, k, v, gate), held = self._products(w, xs, before, convolve, partial(input_products, w))
        i, f = input_products(w, xs, w.if_weight, w.if_bias).chunk(2, dim=-1)
        log_f = logsigmoid(f)
        sums = log_f.cumsum(0)
        highest = sums + torch.maximum((i - sums).cummax(0).values, m)
        decay = log_f + torch.cat([m.unsqueeze(0), highest[:-1]]) - highest
        k = (i - highest).exp().unsqueeze(-1) * k
        v = torch.cat([v, v.new_ones(*v.shape[:-1], 1)], dim=-1)
        y, after = chunked.scan(q, k, v, decay.unsqueeze(-1), torch.cat([C, n.unsqueeze(-1)], dim=-1))
        outputs = self._read(w, y[..., :-1], y[..., -1], highest, gate)
        return outputs, (outputs[-1].clone(), after[..., :-1], after[..., -1], highest[-1].clone(), *held)

    def retention(self, w: Weights) -> Retention:
        """The forget gate of each head: the factor of C and n before they are scaled by e^-m."""
        gate = Gate(w.if_weight[self.heads :], w.if_bias[self.heads :])
        return Retention((gate,), lambda low, high: high.sigmoid())  # noqa: ARG005

    def _products(
        self, w: Weights, x: Tensor, before: Sequence[Tensor], convolution: Convolution, product: Product
    ) -> tuple[tuple[Tensor, Tensor, Tensor, Tensor], LayerState]:
        """q, k, v and the output gate, and what a convolution leaves; it is there if there are inputs `before`."""
        if not before:
            return self._divided(product(x, w.weight_ih, w.bias_ih)), ()
        convolved, held = convolution(x, before[0], w.conv_weight, w.conv_bias)
        half = len(w.weight_ih) // 2
        qk, vo = w.weight_ih.split(half)
        bias_qk, bias_vo = (None, None) if w.bias_ih is None else w.bias_ih.split(half)
        return self._divided(torch.cat([product(silu(convolved), qk, bias_qk), product(x, vo, bias_vo)], -1)), (held,)

    def _divided(self, sums: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        q, k, v, o = sums.chunk(4, dim=-1)
        k = by_heads(k, self.heads)
        return by_heads(q, self.heads), k / math.sqrt(k.shape[-1]), by_heads(v, self.heads), o.sigmoid()

    def _read(self, w: Weights, numerator: Tensor, inner: Tensor, m: Tensor, gate: Tensor) -> Tensor:
        """The output from C q, n q and m; both sides of the fraction are scaled so that neither overflows."""
        low = m.clamp(max=0).exp()
        divisor = torch.maximum(low * inner.abs(), (-m.clamp(min=0)).exp())
        h = low.unsqueeze(-1) * numerator / divisor.unsqueeze(-1)
        if self.head_norm:
            h = layer_norm(h, h.shape[-1:]) * by_heads(w.norm_weight, self.heads)
        return gate * h.flatten(-2)

    def _gate_biases(self, bias: Tensor) -> None:
        bias[: self.heads].normal_(0, 0.1)
        bias[self.heads :] = torch.linspace(3, 6, self.heads)
