"""Both gated recurrent units over a whole sequence: the same functions as the plain loops over `cells.gru`, faster.

T steps, B rows, I inputs, H units; gates r, z, n. As in `kernels.lstm`, the product with the inputs is taken out of
the loop, all that multiplies d h on its way to the gates is formed for all steps at once, and each weight gradient
is one product.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elman.cells.cell import LayerState, Weights
from elman.kernels import product


def gru_reset_after(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """n = tanh(W_n x + b + r (U_n h + b')), h' = z h + (1 - z) n; differentiable once.

    Args:
        weights: input [3H, I], hidden [3H, H], biases [3H] or None.
        xs: inputs [T, B, I], T >= 1.
        state: (h,) before the first step, [B, H].

    Returns:
        outputs [T, B, H] and (h,) after the last step.
    """
    (h,) = state
    w = weights
    xs, h = xs.to(w.input.dtype), h.to(w.input.dtype)
    with torch.autocast(xs.device.type, enabled=False):
        if xs.device.type == "cuda":
            outputs = _vendor(w, xs, h)
        else:
            outputs = _ResetAfter.apply(xs, h, w.input, w.hidden, w.input_bias, w.hidden_bias)
    return outputs, (outputs[-1].clone(),)


def gru_reset_before(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """n = tanh(W_n x + b + U_n (r h)), h' = z h + (1 - z) n (thesis 2.29-2.32); arguments as `gru_reset_after`."""
    (h,) = state
    w = weights
    xs, h = xs.to(w.input.dtype), h.to(w.input.dtype)
    with torch.autocast(xs.device.type, enabled=False):
        outputs = _ResetBefore.apply(
            xs, h, w.input, w.hidden, product.sum_biases(w.input_bias, w.hidden_bias)
        )
    return outputs, (outputs[-1].clone(),)


def _vendor(weights: Weights, xs: Tensor, h: Tensor) -> Tensor:
    zero = torch.zeros_like(weights.input[:, 0])
    biases = [zero if bias is None else bias for bias in (weights.input_bias, weights.hidden_bias)]
    outputs, _ = torch.gru(
        xs, h[None], [weights.input, weights.hidden, *biases], True, 1, 0.0, False, False, False
    )
    return outputs


class _ResetAfter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xs, h0, w_x, w_h, bias_x, bias_h):
        num_steps, num_rows, _ = xs.shape
        size = w_h.shape[1]
        gates = product.multiply(xs.flatten(0, 1), w_x, bias_x)
        gates = gates.view(num_steps, num_rows, 3, size)
        packed = product.pack(w_h, num_rows, num_steps)
        outputs, from_h = xs.new_empty(num_steps, num_rows, size), xs.new_empty(num_steps, num_rows, size)
        h = h0
        for (rz, n), keep, output in zip(
            zip(gates[:, :, :2].unbind(), gates[:, :, 2].unbind(), strict=True),
            from_h.unbind(),
            outputs.unbind(),
            strict=True,
        ):
            u = product.multiply(h, packed, bias_h).view(num_rows, 3, size)
            rz.add_(u[:, :2]).sigmoid_()
            n.addcmul_(rz[:, 0], keep.copy_(u[:, 2])).tanh_()
            h = torch.lerp(n, h, rz[:, 1], out=output)
        ctx.save_for_backward(xs, h0, w_x, w_h, gates, from_h, outputs)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx, d_outputs):
        xs, h0, w_x, w_h, gates, from_h, outputs = ctx.saved_tensors
        num_steps, num_rows, size = outputs.shape
        d_outputs = d_outputs.contiguous()
        before = torch.cat([h0[None], outputs[:-1]])
        r, z, n = gates.unbind(2)
        d_hidden = torch.empty_like(gates)
        h_to_n = (1 - z) * (1 - n * n)
        torch.mul(h_to_n, r, out=d_hidden[:, :, 2])
        torch.mul(d_hidden[:, :, 2] * (1 - r), from_h, out=d_hidden[:, :, 0])
        torch.mul(before - n, z - z * z, out=d_hidden[:, :, 1])
        packed = product.pack(w_h.t(), num_rows, num_steps)
        d_h, no_output = d_outputs[-1], torch.zeros_like(h0)
        for t in range(num_steps - 1, -1, -1):
            h_to_n[t].mul_(d_h)
            d_gate = d_hidden[t].mul_(d_h.unsqueeze(1)).view(num_rows, -1)
            direct = torch.addcmul(d_outputs[t - 1] if t else no_output, d_h, z[t])
            d_h = product.multiply_add(d_gate, packed, direct)
        d_input = torch.cat([d_hidden[:, :, :2], h_to_n.unsqueeze(2)], dim=2).flatten(0, 1).flatten(1)
        d_hidden = d_hidden.flatten(0, 1).flatten(1)
        return (
            product.multiply(d_input, w_x.t()).view_as(xs),
            d_h,
            product.multiply(d_input.t(), xs.flatten(0, 1).t()),
            product.multiply(d_hidden.t(), (before.flatten(0, 1)).t()),
            d_input.sum(0) if ctx.needs_input_grad[4] else None,
            d_hidden.sum(0) if ctx.needs_input_grad[5] else None,
        )


class _ResetBefore(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xs, h0, w_x, w_h, bias):
        num_steps, num_rows, _ = xs.shape
        size = w_h.shape[1]
        gates = product.multiply(xs.flatten(0, 1), w_x, bias)
        gates = gates.view(num_steps, num_rows, 3, size)
        rates, candidates = gates[:, :, :2], gates[:, :, 2]
        to_rates, to_candidate = (
            product.pack(part, num_rows, num_steps) for part in w_h.split((2 * size, size))
        )
        outputs = xs.new_empty(num_steps, num_rows, size)
        h = h0
        for rz, n, output in zip(rates.unbind(), candidates.unbind(), outputs.unbind(), strict=True):
            rz.add_(product.multiply(h, to_rates).view_as(rz)).sigmoid_()
            n.add_(product.multiply(rz[:, 0] * h, to_candidate)).tanh_()
            h = torch.lerp(n, h, rz[:, 1], out=output)
        ctx.save_for_backward(xs, h0, w_x, w_h, gates, outputs)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx, d_outputs):
        xs, h0, w_x, w_h, gates, outputs = ctx.saved_tensors
        num_steps, num_rows, size = outputs.shape
        d_outputs = d_outputs.contiguous()
        before = torch.cat([h0[None], outputs[:-1]])
        r, z, n = gates.unbind(2)
        d_n = (1 - z) * (1 - n * n)
        d_rates = gates.new_empty(num_steps, num_rows, 2, size)
        torch.mul(r - r * r, before, out=d_rates[:, :, 0])
        torch.mul(before - n, z - z * z, out=d_rates[:, :, 1])
        to_rates, to_candidate = (
            product.pack(part.t(), num_rows, num_steps) for part in w_h.split((2 * size, size))
        )
        d_h, no_output = d_outputs[-1], torch.zeros_like(h0)
        for t in range(num_steps - 1, -1, -1):
            d_reset = product.multiply(d_n[t].mul_(d_h), to_candidate)
            d_rates[t, :, 0].mul_(d_reset)
            d_rates[t, :, 1].mul_(d_h)
            direct = torch.addcmul(d_outputs[t - 1] if t else no_output, d_h, z[t]).addcmul_(d_reset, r[t])
            d_h = product.multiply_add(d_rates[t].view(num_rows, -1), to_rates, direct)
        d_n, d_rates, before = d_n.flatten(0, 1), d_rates.flatten(0, 1).flatten(1), before.flatten(0, 1)
        d_gates = torch.cat([d_rates, d_n], dim=1)
        d_w_rates = product.multiply(d_rates.t(), before.t())
        d_w_n = product.multiply(d_n.t(), (r.flatten(0, 1) * before).t())
        return (
            product.multiply(d_gates, w_x.t()).view_as(xs),
            d_h,
            product.multiply(d_gates.t(), xs.flatten(0, 1).t()),
            torch.cat([d_w_rates, d_w_n]),
            d_gates.sum(0) if ctx.needs_input_grad[4] else None,
        )
