"""Recurrent highway networks over a whole sequence: equal to the plain loop over `cells.highway`, and faster.

T steps, B rows, I inputs, H units, L highway layers in a step; blocks h, t and, where it is free, c. As in
`fast.gru`, the product with the inputs is hoisted out of the loop, the factors of the gradients are formed for
all steps at once, and each weight gradient is one product.
"""

from typing import Any

import torch
from torch import Tensor

from elman.network.fast import matmul
from elman.network.fast.matmul import Arrays, State, differentiable_once


def scan(w: Arrays, xs: Tensor, state: State, depth: int, coupled: bool) -> tuple[Tensor, State]:
    """Outputs [T, B, H] over xs [T, B, I], and the state (s,) after them; differentiable once.

    The products have no masks of their own (`Weights.mask`).
    """
    assert w.mask is None, "masks are drawn for the plain steps"
    arrays = w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh
    outputs = _Highway.apply(xs, *state, *arrays, depth, coupled, w.exact)  # type: ignore[no-untyped-call]
    return outputs, (outputs[-1].clone(),)


class _Highway(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        xs: Tensor,
        s0: Tensor,
        w_x: Tensor,
        w_h: Tensor,
        bias_x: Tensor | None,
        bias_h: Tensor | None,
        depth: int,
        coupled: bool,
        exact: bool,
    ) -> Tensor:
        (num_steps, num_rows, _), size, rows = xs.shape, s0.shape[1], len(w_x)
        drive = matmul.multiply(xs.flatten(0, 1), w_x, bias_x, exact=exact).view(num_steps, num_rows, rows)
        packed = [matmul.pack(part, num_rows, num_steps) for part in w_h.split(rows)]
        biases = [None] * depth if bias_h is None else list(bias_h.split(rows))
        gates = xs.new_empty(num_steps, depth, num_rows, rows // size, size)
        states = xs.new_empty(num_steps, depth, num_rows, size)
        s = s0
        for given, gates_of_step, states_of_step in zip(drive, gates, states, strict=True):
            layers = zip(packed, biases, gates_of_step, states_of_step, strict=True)
            for level, (recurrent, bias, gate, state) in enumerate(layers):
                sums = matmul.multiply(s, recurrent, bias)
                if not level:
                    sums.add_(given)
                sums = sums.view_as(gate)
                h = torch.tanh(sums[:, 0], out=gate[:, 0])
                opened = torch.sigmoid(sums[:, 1:], out=gate[:, 1:])
                if coupled:
                    s = torch.lerp(s, h, opened[:, 0], out=state)
                else:
                    s = torch.mul(s, opened[:, 1], out=state).addcmul_(h, opened[:, 0])
        matmul.keep(ctx, xs, s0, w_x, w_h, gates, states)
        return states[:, -1].clone()

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        xs, s0, w_x, w_h, gates, states = ctx.saved_tensors
        num_steps, depth, num_rows, blocks, size = gates.shape
        through = states.flatten(0, 1)
        before = torch.cat([s0[None], through[:-1]]).view_as(states)
        h, t, *c = gates.unbind(3)
        d_gates = torch.empty_like(gates)
        torch.mul(t, 1 - h * h, out=d_gates[..., 0, :])
        torch.mul(h if c else h - before, t - t * t, out=d_gates[..., 1, :])
        if c:
            torch.mul(before, c[0] - c[0] * c[0], out=d_gates[..., 2, :])
        carried = c[0] if c else 1 - t
        back = [matmul.pack(part.t(), num_rows, num_steps) for part in w_h.split(blocks * size)]
        d_s = torch.zeros_like(s0)
        for step in reversed(range(num_steps)):
            d_s = d_s + d_outputs[step]
            layers = zip(back, d_gates[step], carried[step], strict=True)
            for recurrent, d_gate, carry in reversed(list(layers)):
                d_sums = d_gate.mul_(d_s.unsqueeze(1)).view(num_rows, -1)
                d_s = matmul.multiply_add(d_sums, recurrent, d_s * carry)
        by_layer = d_gates.transpose(0, 1).reshape(depth, num_steps * num_rows, -1)
        reads = before.transpose(0, 1).reshape(depth, num_steps * num_rows, size)
        d_w_h = [matmul.multiply(d.t(), read.t()) for d, read in zip(by_layer, reads, strict=True)]
        return (
            matmul.multiply(by_layer[0], w_x.t()).view_as(xs) if ctx.needs_input_grad[0] else None,
            d_s,
            matmul.multiply(by_layer[0].t(), xs.flatten(0, 1).t()),
            torch.cat(d_w_h),
            by_layer[0].sum(0) if ctx.needs_input_grad[4] else None,
            by_layer.sum(1).flatten() if ctx.needs_input_grad[5] else None,
            None,
            None,
            None,
        )
