"""The quasi-recurrent network (Bradbury, Merity, Xiong & Socher 2017), with fo-pooling.

    z = tanh(W_z * x), f = sigm(W_f * x), o = sigm(W_o * x)        * a causal convolution of width 1 or 2 (eqs 1-2)
    c' = f c + (1 - f) z,  h' = o c'                               (eq. 4)

A window of 2 also reads the input before, which is part of the state and zero at first. AWD-QRNN (Merity, Keskar &
Socher 2018) has a window of 2 in its first layer and of 1 above; here all layers of a core have one. Zoneout, dropout
of 1 - f, is left out.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman.network.cells.cell import Array, Cell, Gate, LayerState, Retention, Shape, Weights, block_of, input_products
from elman.network.fast.diagonal import scan


class QRNN(Cell, frozen=True, tag="qrnn"):
    """The network above; a `window` of 2 has weights `weight_before` [3H, I] of the input before."""

    window: Literal[1, 2] = 2
    masks = None
    input_gates = ("z", "f", "o")
    candidate = "z"
    keeps = (("f", 1),)

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        return {"weight_before": Array((3 * size, inputs))} if self.window == 2 else {}

    def shapes(self, inputs: int, size: int) -> tuple[Shape, ...]:
        """h, c and the input before."""
        return ((size,), (size,), (inputs,))[: 1 + self.window]

    def step(self, w: Weights, x: Tensor, state: LayerState) -> LayerState:
        sums = linear(x, w.weight_ih, w.bias_ih)
        if self.window == 2:
            sums = sums + linear(state[2], w.weight_before)
        z, f, o = sums.chunk(3, dim=-1)
        c = torch.lerp(z.tanh(), state[1], f.sigmoid())
        return (o.sigmoid() * c, c, x)[: 1 + self.window]

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        sums = input_products(w, xs)
        if self.window == 2:
            sums = sums + input_products(w, torch.cat([state[2].unsqueeze(0), xs[:-1]]), w.weight_before)
        z, f, o = sums.chunk(3, dim=-1)
        cells = scan(f.sigmoid(), (-f).sigmoid() * z.tanh(), state[1])
        outputs = o.sigmoid() * cells
        return outputs, (outputs[-1].clone(), cells[-1].clone(), xs[-1].clone())[: 1 + self.window]

    def retention(self, w: Weights) -> Retention:
        size = len(w.weight_ih) // 3
        gates = [block_of(w, 1, size)]
        if self.window == 2:
            before = w.weight_before[size : 2 * size]
            gates.append(Gate(before, before.new_zeros(size)))
        return Retention(tuple(gates), lambda low, high: high.sigmoid())  # noqa: ARG005
