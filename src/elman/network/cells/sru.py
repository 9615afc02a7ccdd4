"""The simple recurrent unit (Lei, Zhang, Wang, Dai & Artzi 2018): no product with the state, only its own elements.

    f  = sigm(W_f x + v_f c + b_f)         c' = f c + (1 - f) (W x)
    r  = sigm(W_r x + v_r c + b_r)         h' = r c' + (1 - r) alpha x              (eqs 1-4 and section 3.2)

The skip connection reads x itself where it is as wide as the layer, and else a product of x. alpha =
sqrt(1 + 2 exp(b)) keeps the variance of h, where b, `highway_bias`, is the initial bias of r: r then is
sigm(... + b + b_r), b_r being the bias that is learned. The bias of a layer is also added to W x, which the paper
leaves out. c enters the gates, so the recurrence is not linear in c, and is a loop over elementwise operations; its
gradients have a linear recurrence. r and h' are formed for all steps at once.
"""

import math
from typing import Annotated, Any

import torch
from msgspec import Meta
from torch import Tensor
from torch.nn.functional import linear

from elman.network.cells.cell import Array, Cell, LayerState, Shape, Weights, input_products
from elman.network.fast import diagonal, matmul


class SRU(Cell, frozen=True, tag="sru"):
    """The unit above; `v` [2, H] holds v_f and v_r, `skip` [H, I] the product of x where it is not as wide as h.

    `highway_bias`: the initial bias of the gate r between the cell and the skip connection.
    """

    highway_bias: Annotated[float, Meta(ge=-30, le=30)] = 0.0
    masks = None
    input_gates = ("c", "f", "r")
    candidate = "c"
    keeps = (("f", 1),)

    @property
    def alpha(self) -> float:
        return math.sqrt(1 + 2 * math.exp(self.highway_bias))

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        found = {"v": Array((2, size), _within_root, recurrent=True)}
        return found if inputs == size else found | {"skip": Array((size, inputs))}

    def shapes(self, inputs: int, size: int) -> tuple[Shape, ...]:
        return (size,), (size,)

    def step(self, w: Weights, x: Tensor, state: LayerState) -> LayerState:
        _, c = state
        candidate, f, r = linear(x, w.weight_ih, w.bias_ih).chunk(3, dim=-1)
        v_f, v_r = w.v
        gate = (r + self.highway_bias + v_r * c).sigmoid()
        skip = x if x.shape[-1] == c.shape[-1] else linear(x, w.skip)
        c = torch.lerp(candidate, c, (f + v_f * c).sigmoid())
        return torch.lerp(self.alpha * skip, c, gate), c

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        skips = xs if xs.shape[-1] == state[1].shape[-1] else input_products(w, xs, w.skip)
        candidates, f, r = input_products(w, xs).chunk(3, dim=-1)
        v_f, v_r = w.v
        c: Tensor = _Memory.apply(candidates, f, v_f, state[1])  # type: ignore[no-untyped-call]
        before = torch.cat([state[1].unsqueeze(0), c[:-1]])
        outputs = torch.lerp(self.alpha * skips, c, (r + self.highway_bias + v_r * before).sigmoid())
        return outputs, (outputs[-1].clone(), c[-1].clone())


def _within_root(vectors: Tensor) -> None:
    """Fill v_f and v_r from U(-1 / sqrt(H), 1 / sqrt(H))."""
    bound = 1 / math.sqrt(vectors.shape[1])
    vectors.uniform_(-bound, bound)


class _Memory(torch.autograd.Function):
    """c [T, B, H] after each step, from W x and the sums of f without c, v_f [H] and the first c [B, H]."""

    @staticmethod
    def forward(ctx: Any, candidates: Tensor, sums: Tensor, v_f: Tensor, start: Tensor) -> Tensor:
        memory, gates = torch.empty_like(candidates), torch.empty_like(sums)
        c = start
        for candidate, given, gate, after in zip(candidates, sums, gates, memory, strict=True):
            torch.addcmul(given, v_f, c, out=gate).sigmoid_()
            c = torch.lerp(candidate, c, gate, out=after)
        matmul.keep(ctx, candidates, v_f, start, memory, gates)
        return memory

    @staticmethod
    @matmul.differentiable_once
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        candidates, v_f, start, memory, gates = ctx.saved_tensors
        before = torch.cat([start.unsqueeze(0), memory[:-1]])
        slopes = (before - candidates) * (gates - gates * gates)
        factors = torch.addcmul(gates, slopes, v_f)
        d_memory = diagonal.backwards(gradient, factors)
        d_sums = d_memory * slopes
        return d_memory * (1 - gates), d_sums, (d_sums * before).sum((0, 1)), factors[0] * d_memory[0]
