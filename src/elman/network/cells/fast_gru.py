"""Both gated recurrent units over a whole sequence: equal to the plain loops over `cells.gru`, and faster.

T steps, B rows, I inputs, H units; gates r, z, n. As in `cells.fast_lstm`, the product with the inputs is
hoisted out of the loop, the factors of d h are formed for all steps at once, and each weight gradient is one
product.

Without gradients the library's GRU, whose loop is compiled, runs where it is faster: for single steps (of a layer only
those with large products; small ones are the plain step), and where little is computed in a step. Microseconds of a
step (one thread of an AMD Zen 5, torch 2.13, medians beside other work;
`python benchmarks/recurrent.py --threads 1 --cpu-time narrow`):

      T  B  I = H    library, hoisted
      1  1    128         51  211
      1  1    650        292  527
    700  1    128         18   69
    700  1    400         81  123
    700  1    650        179  189
     35 20    200        174  238
     35 20    300        381  391
     35 20    650       1713 1216

In training the hoisted form runs on a CPU (`gru` of that benchmark compares both).
"""

from typing import Any

import torch
from torch import Tensor

from elman.network import matmul, precision
from elman.network.cells.cell import LayerState, Weights
from elman.network.cells.fast_lstm import keeps_workspace, library_parameters, library_type
from elman.network.matmul import differentiable_once

LIBRARY_UNITS = 5000
"""Up to so many units of all rows together, of 512 in a row at most, the library's form is used without gradients."""


def gru_reset_after(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """The form of the vendor kernels: n = tanh(W_n x + b + r (U_n h + b')), h' = z h + (1 - z) n.

    Returns outputs [T, B, H] over xs [T, B, I], and the state (h,) after them; differentiable once.
    """
    (h,) = state
    outputs = (_library if library_gru(xs, h.shape[1]) else hoisted)(weights, xs, h)
    return outputs, (outputs[-1].clone(),)


def hoisted(weights: Weights, xs: Tensor, h: Tensor) -> Tensor:
    """The outputs [T, B, H] by this module's own products."""
    w = weights
    found: Tensor = _ResetAfter.apply(xs, h, w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh, w.exact)  # type: ignore[no-untyped-call]
    return found


def _library(weights: Weights, xs: Tensor, h: Tensor) -> Tensor:
    dtype = library_type(xs)
    begun, parameters = (xs.to(dtype), h[None].to(dtype)), library_parameters(weights, dtype)
    return torch.gru(*begun, parameters, True, 1, 0.0, keeps_workspace(xs), False, False)[0].to(xs.dtype)


def library_gru(xs: Tensor, hidden_size: int) -> bool:
    """Whether the library's GRU is used for inputs [T, B, I]: on CUDA, and on the CPU where the table above has it."""
    if xs.device.type == "cuda":
        return True
    if torch.is_grad_enabled() or precision.chosen() != "float32" or xs.device.type != "cpu":
        return False
    return len(xs) == 1 or (hidden_size <= 512 and xs.shape[1] * hidden_size <= LIBRARY_UNITS)


def gru_reset_before(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """The form of the thesis (2.29-2.32): n = tanh(W_n x + b + U_n (r h)), h' = z h + (1 - z) n.

    Returns outputs [T, B, H] over xs [T, B, I], and the state (h,) after them; differentiable once.
    """
    w = weights
    bias = matmul.sum_biases(w.bias_ih, w.bias_hh)
    outputs = _ResetBefore.apply(xs, *state, w.weight_ih, w.weight_hh, bias, w.exact)  # type: ignore[no-untyped-call]
    return outputs, (outputs[-1].clone(),)


def _from_inputs(xs: Tensor, w_x: Tensor, bias: Tensor | None, exact: bool) -> Tensor:
    """The input products of the gates, [T, B, 3, H]."""
    return matmul.multiply(xs.flatten(0, 1), w_x, bias, exact=exact).view(*xs.shape[:2], 3, -1)


class _ResetAfter(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        xs: Tensor,
        h0: Tensor,
        w_x: Tensor,
        w_h: Tensor,
        bias_x: Tensor | None,
        bias_h: Tensor | None,
        exact: bool,
    ) -> Tensor:
        gates = _from_inputs(xs, w_x, bias_x, exact)
        num_steps, num_rows, _, size = gates.shape
        packed = matmul.pack(w_h, num_rows, num_steps)
        outputs, candidates = xs.new_empty(num_steps, num_rows, size), xs.new_empty(num_steps, num_rows, size)
        h = h0
        for rz, n, candidate, output in zip(gates[:, :, :2], gates[:, :, 2], candidates, outputs, strict=True):
            from_h = matmul.multiply(h, packed, bias_h).view(num_rows, 3, size)
            rz.add_(from_h[:, :2]).sigmoid_()
            n.addcmul_(rz[:, 0], candidate.copy_(from_h[:, 2])).tanh_()
            h = torch.lerp(n, h, rz[:, 1], out=output)
        matmul.keep(ctx, xs, h0, w_x, w_h, gates, candidates, outputs)
        return outputs

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        xs, h0, w_x, w_h, gates, candidates, outputs = ctx.saved_tensors
        num_steps, num_rows, _ = outputs.shape
        before = torch.cat([h0[None], outputs[:-1]])
        r, z, n = gates.unbind(2)
        d_n = (1 - z) * (1 - n * n)
        d_hidden = torch.empty_like(gates)
        torch.mul(d_n, r, out=d_hidden[:, :, 2])
        torch.mul(d_n * (r - r * r), candidates, out=d_hidden[:, :, 0])
        torch.mul(before - n, z - z * z, out=d_hidden[:, :, 1])
        packed = matmul.pack(w_h.t(), num_rows, num_steps)
        d_h, earlier = d_outputs[-1], (*d_outputs[:-1].unbind()[::-1], torch.zeros_like(h0))
        for t, d_output in zip(reversed(range(num_steps)), earlier, strict=True):
            d_n[t].mul_(d_h)
            d_gate = d_hidden[t].mul_(d_h.unsqueeze(1)).view(num_rows, -1)
            d_h = matmul.multiply_add(d_gate, packed, torch.addcmul(d_output, d_h, z[t]))
        d_input = torch.cat([d_hidden[:, :, :2], d_n.unsqueeze(2)], dim=2).flatten(0, 1).flatten(1)
        d_hidden = d_hidden.flatten(0, 1).flatten(1)
        return (
            matmul.multiply(d_input, w_x.t()).view_as(xs) if ctx.needs_input_grad[0] else None,
            d_h,
            matmul.multiply(d_input.t(), xs.flatten(0, 1).t()),
            matmul.multiply(d_hidden.t(), before.flatten(0, 1).t()),
            d_input.sum(0) if ctx.needs_input_grad[4] else None,
            d_hidden.sum(0) if ctx.needs_input_grad[5] else None,
            None,
        )


class _ResetBefore(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, xs: Tensor, h0: Tensor, w_x: Tensor, w_h: Tensor, bias: Tensor | None, exact: bool) -> Tensor:
        gates = _from_inputs(xs, w_x, bias, exact)
        num_steps, num_rows, _, size = gates.shape
        to_rz, to_n = (matmul.pack(part, num_rows, num_steps) for part in (w_h[: 2 * size], w_h[2 * size :]))
        outputs = xs.new_empty(num_steps, num_rows, size)
        h = h0
        for rz, n, output in zip(gates[:, :, :2], gates[:, :, 2], outputs, strict=True):
            rz.add_(matmul.multiply(h, to_rz).view_as(rz)).sigmoid_()
            n.add_(matmul.multiply(rz[:, 0] * h, to_n)).tanh_()
            h = torch.lerp(n, h, rz[:, 1], out=output)
        matmul.keep(ctx, xs, h0, w_x, w_h, gates, outputs)
        return outputs

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        xs, h0, w_x, w_h, gates, outputs = ctx.saved_tensors
        num_steps, num_rows, size = outputs.shape
        before = torch.cat([h0[None], outputs[:-1]])
        r, z, n = gates.unbind(2)
        d_n = (1 - z) * (1 - n * n)
        d_rz = gates.new_empty(num_steps, num_rows, 2, size)
        torch.mul(r - r * r, before, out=d_rz[:, :, 0])
        torch.mul(before - n, z - z * z, out=d_rz[:, :, 1])
        from_rz, from_n = (matmul.pack(part.t(), num_rows, num_steps) for part in (w_h[: 2 * size], w_h[2 * size :]))
        d_h, earlier = d_outputs[-1], (*d_outputs[:-1].unbind()[::-1], torch.zeros_like(h0))
        for t, d_output in zip(reversed(range(num_steps)), earlier, strict=True):
            d_reset = matmul.multiply(d_n[t].mul_(d_h), from_n)
            d_rz[t, :, 0].mul_(d_reset)
            d_rz[t, :, 1].mul_(d_h)
            direct = torch.addcmul(d_output, d_h, z[t]).addcmul_(d_reset, r[t])
            d_h = matmul.multiply_add(d_rz[t].view(num_rows, -1), from_rz, direct)
        d_n, d_rz, before = d_n.flatten(0, 1), d_rz.flatten(0, 1).flatten(1), before.flatten(0, 1)
        d_gates = torch.cat([d_rz, d_n], dim=1)
        d_w_rz = matmul.multiply(d_rz.t(), before.t())
        d_w_n = matmul.multiply(d_n.t(), (r.flatten(0, 1) * before).t())
        return (
            matmul.multiply(d_gates, w_x.t()).view_as(xs) if ctx.needs_input_grad[0] else None,
            d_h,
            matmul.multiply(d_gates.t(), xs.flatten(0, 1).t()),
            torch.cat([d_w_rz, d_w_n]),
            d_gates.sum(0) if ctx.needs_input_grad[4] else None,
            None,
        )
