"""The simple recurrent unit (Lei, Zhang, Wang, Dai & Artzi 2018): no product with the state, only its own elements.

    f  = sigm(W_f x + v_f c + b_f)         c' = f c + (1 - f) (W x)
    r  = sigm(W_r x + v_r c + b_r)         h' = r c' + (1 - r) alpha x              (eqs 1-4 and section 3.2)

The skip connection reads x itself where it is as wide as the layer, and else a product of x. alpha =
sqrt(1 + 2 exp(b)) keeps the variance of h, where b, `highway_bias`, is the initial bias of r: r then is
sigm(... + b + b_r), b_r being the bias that is learned. The bias of a layer is also added to W x, which the paper
leaves out. c enters the gates, so the recurrence is not linear in c, and is a loop over elementwise operations; that of
its gradients is linear. r and h' are formed for all steps at once.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman import config
from elman.network import matmul
from elman.network.cells import scan
from elman.network.cells.cell import Array, Cell, LayerState, Structured, Weights, input_products, product_of_inputs


@torch.no_grad()
def fill(vectors: Tensor) -> None:
    """Fill v_f and v_r [2, H] from U(-1 / sqrt(H), 1 / sqrt(H))."""
    bound = 1 / math.sqrt(vectors.shape[1])
    vectors.uniform_(-bound, bound)


def build(record: config.SRU) -> Cell:
    """The cell of a recipe."""
    shift, alpha = record.highway_bias, math.sqrt(1 + 2 * math.exp(record.highway_bias))

    def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
        _, c = state
        skip = linear(x, weights.extra[0]) if weights.extra else x
        candidate, f, r = linear(x, weights.input, weights.input_bias).chunk(3, dim=-1)
        v_f, v_r = weights.hidden
        gate = (r + shift + v_r * c).sigmoid()
        c = torch.lerp(candidate, c, (f + v_f * c).sigmoid())
        return torch.lerp(alpha * skip, c, gate), c

    def sequence(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        skips = product_of_inputs(weights, xs, weights.extra[0]) if weights.extra else xs
        candidates, f, r = input_products(weights, xs).chunk(3, dim=-1)
        v_f, v_r = weights.hidden
        c: Tensor = _Memory.apply(candidates, f, v_f, state[1])  # type: ignore[no-untyped-call]
        before = torch.cat([state[1].unsqueeze(0), c[:-1]])
        outputs = torch.lerp(alpha * skips, c, (r + shift + v_r * before).sigmoid())
        return outputs, (outputs[-1].clone(), c[-1].clone())

    return Cell(
        gates=0,
        slots=2,
        step=step,
        sequence=sequence,
        name="sru",
        keeps=((1, 1),),
        input_gates=3,
        extra=lambda inputs, size: () if inputs == size else (Array((size, inputs)),),
        masks=None,
        structured=Structured(lambda size: (2, size), fill),
    )


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
        d_memory = scan.backwards(gradient, factors)
        d_sums = d_memory * slopes
        return d_memory * (1 - gates), d_sums, (d_sums * before).sum((0, 1)), factors[0] * d_memory[0]
