"""The quasi-recurrent network (Bradbury, Merity, Xiong & Socher 2017), with fo-pooling.

    z = tanh(W_z * x), f = sigm(W_f * x), o = sigm(W_o * x)        * a causal convolution of width 1 or 2 (eqs 1-2)
    c' = f c + (1 - f) z,  h' = o c'                               (eq. 4)

A window of 2 also reads the input before, which is part of the state and zero at first. AWD-QRNN (Merity, Keskar &
Socher 2018) has a window of 2 in its first layer and of 1 above; here all layers of a core have one. Zoneout, dropout
of 1 - f, is left out.
"""

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman import config
from elman.network.cells.cell import (
    Array,
    Cell,
    Gate,
    LayerState,
    Retention,
    Shape,
    Weights,
    block_of,
    input_products,
    product_of_inputs,
)
from elman.network.cells.scan import scan


def pool(sums: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Return h' and c' from sums [B, 3H] in the order z, f, o."""
    z, f, o = sums.chunk(3, dim=-1)
    c = torch.lerp(z.tanh(), c, f.sigmoid())
    return o.sigmoid() * c, c


def pool_all(sums: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs and cells [T, B, H] of all steps, from sums [T, B, 3H] and the cell before."""
    z, f, o = sums.chunk(3, dim=-1)
    cells = scan(f.sigmoid(), (-f).sigmoid() * z.tanh(), c)
    return o.sigmoid() * cells, cells


def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
    """A window of 1."""
    return pool(linear(x, weights.input, weights.input_bias), state[1])


def sequence(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """A window of 1 over xs [T, B, I]."""
    outputs, cells = pool_all(input_products(weights, xs), state[1])
    return outputs, (outputs[-1].clone(), cells[-1].clone())


def step_of_two(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
    """A window of 2: the sums have a part from the input before, by weights [3H, I] of its own."""
    assert weights.extra is not None
    sums = linear(x, weights.input, weights.input_bias) + linear(state[2], weights.extra[0])
    return *pool(sums, state[1]), x


def sequence_of_two(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """A window of 2 over xs [T, B, I]."""
    assert weights.extra is not None
    before = torch.cat([state[2].unsqueeze(0), xs[:-1]])
    sums = input_products(weights, xs) + product_of_inputs(weights, before, weights.extra[0])
    outputs, cells = pool_all(sums, state[1])
    return outputs, (outputs[-1].clone(), cells[-1].clone(), xs[-1].clone())


def _memory(inputs: int, size: int) -> tuple[Shape, ...]:
    return (size,), (size,), (inputs,)


def _before(inputs: int, size: int) -> tuple[Array, ...]:
    return (Array((3 * size, inputs)),)


def _kept(weights: Weights) -> Retention:
    size = len(weights.input) // 3
    gates = [block_of(weights, 1, size)]
    if weights.extra:
        before = weights.extra[0][size : 2 * size]
        gates.append(Gate(before, before.new_zeros(size)))
    return Retention(tuple(gates), lambda low, high: high.sigmoid())  # noqa: ARG005


QRNN_1 = Cell(0, 2, step, sequence, "qrnn", keeps=((1, 1),), input_gates=3, masks=None, retention=_kept)
QRNN_2 = QRNN_1._replace(slots=3, step=step_of_two, sequence=sequence_of_two, extra=_before, memory=_memory)


def build(record: config.QRNN) -> Cell:
    """The form with a recipe's window."""
    return QRNN_1 if record.window == 1 else QRNN_2
