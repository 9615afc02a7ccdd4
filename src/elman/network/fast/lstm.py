"""The LSTM over a whole sequence: equal to the plain loop over its step, and faster.

T steps, B rows, I inputs, H units; gates i, f, g, o. Three things make it fast on a CPU: the product with
the inputs is hoisted out of the loop; the factors by which d h and d c reach the gates are formed for all
steps at once, so that a step back in time is one product and four elementwise operations; each weight
gradient is one product.

The library's LSTM runs instead where it is faster. Milliseconds of one thread (AMD Zen 5, torch 2.13;
`python benchmarks/recurrent.py --threads 1 --cpu-time lstm`):

    T B I H               training: library, hoisted     without gradients: library, hoisted
    70  20 1150 1150           444  490                            241  174
    70  20  400 1150           305  358                            155  135
    70  10 1500 1500                                               306  196
    50 100  128 1024           835  942                            235  302
    70  12  280  960           125  146                             43   51
    35  20  650  650            72   84                             24   29
    35  20  200  256            11   18                            3.6  6.0
     1   1 1150 1150                                                21  1.6

The library lays its weights out on every call, which is not worth it for one step, and slows down where they
outgrow the cache. With bf16 products (avx512_bf16) it is given bf16 tensors up to a width and from a number of rows
on (`policy.library_lstm`): then h and c are rounded at every step too. Its gradients differ from float64 gradients by
0.5 %, where the hoisted form's differ by 0.4 % (35 steps). For GRUs see `fast.gru`.
"""

from typing import Any

import torch
from torch import Tensor

from elman.network.fast import matmul, operators, policy
from elman.network.fast.matmul import Arrays, State, differentiable_once


def scan(w: Arrays, xs: Tensor, state: State) -> tuple[Tensor, State]:
    """Outputs [T, B, H] over xs [T, B, I], and the state (h, c) after them; no peepholes, differentiable once."""
    h, c = state
    if torch.compiler.is_dynamo_compiling():
        bias = matmul.sum_biases(w.bias_ih, w.bias_hh)
        outputs, c = operator(xs, h, c, w.weight_ih, w.weight_hh, bias, w.exact)[:2]
        return outputs, (outputs[-1].clone(), c)
    kernel = policy.persistent(xs)
    if kernel is not None and (found := kernel.scan("lstm", w, xs, state)) is not None:
        return found
    dtype = policy.library_lstm(xs, h.shape[1], exact=w.exact)
    if dtype is not None:
        return library(w, xs, h, c, dtype)
    outputs, c = hoisted(w, xs, h, c)
    return outputs, (outputs[-1].clone(), c)


def hoisted(w: Arrays, xs: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The outputs [T, B, H] and the last c [B, H], by this module's own products."""
    bias = matmul.sum_biases(w.bias_ih, w.bias_hh)
    if torch.is_grad_enabled():
        return _LSTM.apply(xs, h, c, w.weight_ih, w.weight_hh, bias, w.exact)  # type: ignore[no-untyped-call]
    return _without_gradients(xs, h, c, w.weight_ih, w.weight_hh, bias, w.exact)


def library(w: Arrays, xs: Tensor, h: Tensor, c: Tensor, dtype: torch.dtype) -> tuple[Tensor, State]:
    """As `scan`, by the library in this type, which reads beyond arrays of other shapes without an error."""
    assert xs.shape[1:] == (len(h), w.weight_ih.shape[1])
    assert h.shape == c.shape == (len(h), w.weight_hh.shape[1])
    given = xs, h.unsqueeze(0), c.unsqueeze(0)
    x, *begun = given if dtype == xs.dtype else (part.to(dtype) for part in given)
    found = torch.lstm(x, begun, library_parameters(w, dtype), True, 1, 0.0, keeps_workspace(xs), False, False)
    outputs, h, c = found if dtype == xs.dtype else (part.to(xs.dtype) for part in found)
    return outputs, (h.squeeze(0), c.squeeze(0))


def _without_gradients(
    xs: Tensor, h: Tensor, c: Tensor, w_x: Tensor, w_h: Tensor, bias: Tensor | None, exact: bool
) -> tuple[Tensor, Tensor]:
    num_steps, num_rows, _ = xs.shape
    from_x = matmul.multiply(xs.flatten(0, 1), w_x, bias, exact=exact).view(num_steps, num_rows, -1)
    packed = matmul.pack(w_h, num_rows, num_steps)
    outputs, c = xs.new_empty(num_steps, num_rows, w_h.shape[1]), c.clone()
    for x, output in zip(from_x.unbind(), outputs.unbind(), strict=True):
        i, f, g, o = matmul.multiply_add(h, packed, x).chunk(4, dim=1)
        c.mul_(f.sigmoid_()).addcmul_(i.sigmoid_(), g.tanh_())
        h = torch.mul(o.sigmoid_(), c.tanh(), out=output)
    return outputs, c


class _LSTM(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, xs: Tensor, h0: Tensor, c0: Tensor, w_x: Tensor, w_h: Tensor, bias: Tensor | None, exact: bool
    ) -> tuple[Tensor, Tensor]:
        num_steps, num_rows, _ = xs.shape
        size = w_h.shape[1]
        from_x = matmul.multiply(xs.flatten(0, 1), w_x, bias, exact=exact).view(num_steps, num_rows, 4 * size)
        packed = matmul.pack(w_h, num_rows, num_steps)
        gates = from_x.view(num_steps, num_rows, 4, size)  # each step's takes the place of its input
        cells, outputs = xs.new_empty(num_steps + 1, num_rows, size), xs.new_empty(num_steps, num_rows, size)
        cells[0] = c0
        h, c = h0, cells[0]
        steps = zip(from_x.unbind(), gates.unbind(), cells[1:].unbind(), outputs.unbind(), strict=True)
        for x, gate, new, output in steps:
            z = matmul.multiply_add(h, packed, x).view_as(gate)
            i, f, g, o = torch.sigmoid(z, out=gate).unbind(1)
            torch.tanh(z[:, 2], out=g)
            c = torch.mul(f, c, out=new).addcmul_(i, g)
            h = torch.mul(o, c.tanh(), out=output)
        matmul.keep(ctx, xs, h0, w_x, w_h, gates, cells, outputs)
        return outputs, cells[-1].clone()

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, d_outputs: Tensor, d_c: Tensor) -> tuple[Tensor | None, ...]:
        xs, h0, w_x, w_h, gates, cells, outputs = ctx.saved_tensors
        num_steps, num_rows, _ = outputs.shape
        d_z, h_to_c = factors(gates, cells)
        packed = matmul.pack(w_h.t(), num_rows, num_steps)
        d_outputs = d_outputs.contiguous()
        earlier = (*d_outputs[:-1].unbind()[::-1], torch.zeros_like(h0))
        forget = gates[:, :, 1]
        d_h, d_c = d_outputs[-1], d_c.clone()
        for t, d_output in zip(reversed(range(num_steps)), earlier, strict=True):
            step = back_through_gates(d_z[t], d_h, d_c, h_to_c[t], forget[t])
            d_h = matmul.multiply_add(step, packed, d_output)
        flat = d_z.view(num_steps * num_rows, -1)
        low = matmul.rounded(flat, min(xs.shape[2], w_h.shape[1]))
        d_xs = matmul.multiply(low, w_x.t()).view_as(xs) if ctx.needs_input_grad[0] else None
        d_z_t = low.t().contiguous()
        d_bias = (d_z_t.sum(1) if low is flat else flat.sum(0)) if ctx.needs_input_grad[5] else None
        del d_z, flat, low, step
        before = torch.cat([h0[None], outputs[:-1]]).flatten(0, 1)
        d_w_x = matmul.multiply(d_z_t, xs.flatten(0, 1).t())
        d_w_h = matmul.multiply(d_z_t, before.t())
        return d_xs, d_h, d_c, d_w_x, d_w_h, d_bias, None


@torch.library.custom_op("elman::lstm", mutates_args=())
def operator(
    xs: Tensor, h: Tensor, c: Tensor, w_x: Tensor, w_h: Tensor, bias: Tensor | None, exact: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """As `hoisted`; also the gates [T, B, 4, H], the cells [T + 1, B, H], and the number of the precision."""
    outputs, last, gates, cells, kind = operators.forward("elman::lstm", xs, h, c, w_x, w_h, bias, exact)
    return outputs, last, gates, cells, kind


@operator.register_fake
def _(xs: Tensor, h: Tensor, *_rest: object) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    (steps, rows, _), size = xs.shape, h.shape[1]
    shapes = (steps, rows, size), (rows, size), (steps, rows, 4, size), (steps + 1, rows, size)
    outputs, last, gates, cells = (xs.new_empty(shape) for shape in shapes)
    return outputs, last, gates, cells, torch.empty((), dtype=torch.int64)


operators.register(operator, _LSTM, results=2, matrices=slice(3, 5))


def factors(gates: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
    """Return what d c (for i, f, g) and d h (for o) are multiplied by to give d z [T, B, 4, H]; d c / d h."""
    found, h_to_c = torch.empty_like(gates), torch.empty_like(cells[1:])
    arrays = gates, cells[:-1], cells[1:], found, h_to_c
    for gate, old, new, factor, to_c in zip(*map(policy.in_cache, arrays), strict=True):
        i, f, g, o = gate.unbind(2)
        tanh_c = new.tanh()
        torch.mul(i - i * i, g, out=factor[:, :, 0])
        torch.mul(f - f * f, old, out=factor[:, :, 1])
        torch.addcmul(i, i * g, g, value=-1, out=factor[:, :, 2])
        torch.mul(o - o * o, tanh_c, out=factor[:, :, 3])
        torch.addcmul(o, o * tanh_c, tanh_c, value=-1, out=to_c)
    return found, h_to_c


def back_through_gates(step: Tensor, d_h: Tensor, d_c: Tensor, h_to_c: Tensor, forget: Tensor) -> Tensor:
    """The gradient of a step's sums [B, 4 H], in place of its `factors` [B, 4, H]; d_c becomes the old cell's."""
    d_c.addcmul_(d_h, h_to_c)
    step[:, :3].mul_(d_c.unsqueeze(1))
    step[:, 3].mul_(d_h)
    d_c.mul_(forget)
    return step.view(len(step), -1)


def keeps_workspace(xs: Tensor) -> bool:
    """The library's flag `train`, without which cuDNN has no backward pass; no dropout depends on it here."""
    return xs.is_cuda and torch.is_grad_enabled()


def library_parameters(w: Arrays, dtype: torch.dtype) -> list[Tensor]:
    """The arguments of the library's functions: both matrices, and two biases, zeros where the layer has none.

    On CUDA they are parts of one block, as cuDNN needs them; it copies others on every call, with a warning.
    """
    biases = [w.weight_ih.new_zeros(len(w.weight_ih)) if bias is None else bias for bias in (w.bias_ih, w.bias_hh)]
    parts = [w.weight_ih, w.weight_hh, *biases]
    if w.weight_ih.is_cuda:
        block = torch.cat([part.flatten() for part in parts]).to(dtype)
        split = block.split([part.numel() for part in parts])
        return [flat.view(part.shape) for flat, part in zip(split, parts, strict=True)]
    return parts if dtype == w.weight_ih.dtype else [part.to(dtype) for part in parts]
