"""The sLSTM over a whole sequence: equal to the plain loop over `cells.slstm`, and faster.

T steps, B rows, I inputs, H units in G heads of d; gates i, f, z, o. As in `fast.gru`, the product with the
inputs is hoisted out of the loop, the factors of the gradients are formed for all steps at once, and the gradient of
the recurrent weights is one product. Inside, a tensor of a step is [G, B, d], so that the recurrent products of all
heads and gates are one batched product.

Since h does not depend on m in exact arithmetic, the gradients of c and n are formed as if m were constant. The last c,
n and m depend on m directly; that part is added where gradients of them are asked for. Rows that have not begun have
n = 0, and so c = 0.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from elman.network.fast import matmul
from elman.network.fast.matmul import Arrays, State, differentiable_once


def scan(w: Arrays, xs: Tensor, state: State, heads: int, exponential: bool) -> tuple[Tensor, State]:
    """Outputs [T, B, H] over xs [T, B, I], and the state (h, c, n, m) after them; differentiable once."""
    drive = matmul.linear(xs, w.weight_ih, matmul.sum_biases(w.bias_ih, w.bias_hh), exact=w.exact)
    outputs, *memory = _SLSTM.apply(drive, *state, w.weight_hh, heads, exponential)  # type: ignore[no-untyped-call]
    return outputs, (outputs[-1].clone(), *memory)


def _inside(x: Tensor, heads: int) -> Tensor:
    """A copy of x [..., B, H] as [..., G, B, d], laid out in this order."""
    return x.unflatten(-1, (heads, -1)).transpose(-2, -3).clone(memory_format=torch.contiguous_format)


def _outside(x: Tensor) -> Tensor:
    """Rearrange x [..., G, B, d] as [..., B, H]."""
    return x.transpose(-2, -3).flatten(-2)


class _SLSTM(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        drive: Tensor,
        h0: Tensor,
        c0: Tensor,
        n0: Tensor,
        m0: Tensor,
        w_h: Tensor,
        heads: int,
        exponential: bool,
    ) -> tuple[Tensor, ...]:
        num_steps = len(drive)
        gates = _inside(drive.unflatten(-1, (4, -1)).transpose(1, 2), heads)
        h, c, n, m = begun = tuple(_inside(part, heads) for part in (h0, c0, n0, m0))
        recurrent = w_h.view(4, heads, h.shape[-1], -1).permute(1, 3, 0, 2).flatten(2).contiguous()
        outputs, cells, normalisers = torch.empty(3, num_steps, *h.shape, dtype=h.dtype, device=h.device)
        logs: list[Tensor] = []
        fresh = n == 0
        steps = zip(gates, *gates.unbind(1), outputs, cells, normalisers, strict=True)
        for gate, i, f, z, o, output, cell, normaliser in steps:
            gate.add_(torch.bmm(h, recurrent).unflatten(-1, (4, -1)).permute(2, 0, 1, 3))
            log_f = f if exponential else logsigmoid(f)
            kept = log_f + m if logs else torch.where(fresh, i, log_f + m)
            m = torch.maximum(kept, i)
            logs.append(log_f)
            torch.sub(kept, m, out=f)
            i.sub_(m)
            gate[:2].exp_()
            c = torch.mul(f, c, out=cell).addcmul_(i, z.tanh_())
            n = torch.addcmul(i, f, n, out=normaliser)
            h = torch.div(c, n, out=output).mul_(o.sigmoid_())
        ctx.set_materialize_grads(False)
        rates = None if exponential else torch.expm1(torch.stack(logs)).neg_()
        matmul.keep(ctx, w_h, gates, outputs, cells, normalisers, rates, fresh, *begun)
        return _outside(outputs), *map(_outside, (c, n, m))

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, d_outputs: Tensor | None, *d_memory: Tensor | None) -> tuple[Tensor | None, ...]:
        w_h, gates, outputs, cells, normalisers, rates, fresh, h0, c0, n0, _ = ctx.saved_tensors
        num_steps, heads, num_rows, size = outputs.shape
        enter, keep, z, o = gates.unbind(1)
        before, memory = torch.cat([h0[None], outputs[:-1]]), torch.stack([cells, normalisers], 1)
        memory_before = torch.cat([torch.stack([c0, n0])[None], memory[:-1]])
        ratio = cells / normalisers
        to_memory = torch.stack([o / normalisers, -o * ratio / normalisers], 1)
        to_output = ratio * (o - o * o)
        to_candidate = enter * (1 - z * z)
        forget = keep if rates is None else keep * rates
        to_keep = memory_before * forget.unsqueeze(1)
        to_enter = torch.stack([enter * z, enter], 1)
        from_c, from_n = torch.stack([to_enter, to_keep], 2).unbind(1)

        later = [torch.zeros_like(h0) if d is None else _inside(d, heads) for d in d_memory]
        last = cells[-1], normalisers[-1]
        shift = None if d_memory == (None,) * 3 else _of_the_maximum(later, *last, keep, rates, fresh)
        d_state = torch.stack(later[:2])
        d_sums = outputs.new_empty(num_steps, heads, num_rows, 4, size)
        by_gate = d_sums.permute(0, 3, 1, 2, 4)
        back = w_h.view(4, heads, size, -1).transpose(0, 1).flatten(1, 2).contiguous()
        d_before = torch.zeros_like(before) if d_outputs is None else _inside(d_outputs, heads)
        d_h = d_before[-1]
        for t in reversed(range(num_steps)):
            d_state.addcmul_(d_h, to_memory[t])
            torch.mul(d_state[0], from_c[t], out=by_gate[t, :2]).addcmul_(d_state[1], from_n[t])
            torch.mul(d_state[0], to_candidate[t], out=by_gate[t, 2])
            torch.mul(d_h, to_output[t], out=by_gate[t, 3])
            d_state.mul_(keep[t])
            if shift is not None:
                by_gate[t, :2].add_(shift[0][t])
            d_h = torch.baddbmm(d_before[t - 1] if t else torch.zeros_like(h0), d_sums[t].flatten(-2), back)
        d_m = (d_state * torch.stack([c0, n0])).sum(0)
        d_m = d_m if shift is None else d_m + shift[1]

        by_head = before.transpose(0, 1).flatten(1, 2).mT, d_sums.transpose(0, 1).flatten(3).flatten(1, 2)
        d_recurrent = torch.bmm(*by_head).unflatten(-1, (4, -1)).permute(2, 0, 3, 1)
        d_drive = d_sums.permute(0, 2, 3, 1, 4).reshape(num_steps, num_rows, -1)
        return d_drive, *map(_outside, (d_h, *d_state, d_m)), d_recurrent.reshape(w_h.shape), None, None


def _of_the_maximum(
    later: Sequence[Tensor], cell: Tensor, normaliser: Tensor, keep: Tensor, rates: Tensor | None, fresh: Tensor
) -> tuple[Tensor, Tensor]:
    """The part of the gradient of the last c, n and m that goes through m, to which c and n are proportional as e^-m.

    With d_m, d_c and d_n the gradients of the last ones it begins as d_m - d_c c - d_n n. m is the sum of the
    logarithms of the forget gates since the last step that entered by i, so that the gradient goes to that i and to
    these gates. Returned are the gradients of i and f, [T, 2, G, B, d], and of the first m.
    """
    d_m = later[2] - later[0] * cell - later[1] * normaliser
    stays = (keep == 1).to(keep.dtype)
    stays[0].masked_fill_(fresh, 0)
    onward = torch.cat([stays[1:], torch.ones_like(stays[:1])]).flip(0).cumprod(0).flip(0) * d_m
    kept = onward * stays
    return torch.stack([onward - kept, kept if rates is None else kept * rates], 1), kept[0]
