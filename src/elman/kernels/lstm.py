"""The LSTM over a whole sequence: the same function as the plain loop over `cells.lstm.step`, faster.

T steps, B rows, I inputs, H units; gates i, f, g, o. Three things make it fast on a CPU: the product with the inputs
is taken out of the loop; the factors by which d h and d c reach the gates are formed for all steps at once, so that
a step back in time is one product and four elementwise operations; and each weight gradient is one product.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elman.cells.cell import LayerState, Weights
from elman.kernels import product


def lstm(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """Run over xs [T, B, I] from state (h, c), each [B, H]; differentiable once.

    Args:
        weights: input [4H, I], hidden [4H, H], biases [4H] or None; `weights.peephole` must be None.
        xs: inputs [T, B, I], T >= 1.
        state: (h, c) before the first step.

    Returns:
        outputs [T, B, H] and (h, c) after the last step.
    """
    assert weights.peephole is None, "peepholes have no fast form"
    w = weights
    xs, h, c = (tensor.to(w.input.dtype) for tensor in (xs, *state))
    with torch.autocast(xs.device.type, enabled=False):
        if xs.device.type == "cuda":
            outputs, c = _vendor(w, xs, h, c)
        else:
            run = _LSTM.apply if torch.is_grad_enabled() else _evaluate
            outputs, c = run(xs, h, c, w.input, w.hidden, product.sum_biases(w.input_bias, w.hidden_bias))
    return outputs, (outputs[-1].clone(), c)


def _vendor(weights: Weights, xs: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    zero = torch.zeros_like(weights.input[:, 0])
    biases = [zero if bias is None else bias for bias in (weights.input_bias, weights.hidden_bias)]
    parameters = [weights.input, weights.hidden, *biases]
    outputs, _, c = torch.lstm(xs, [h[None], c[None]], parameters, True, 1, 0.0, False, False, False)
    return outputs, c[0]


def _evaluate(
    xs: Tensor, h: Tensor, c: Tensor, w_x: Tensor, w_h: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    num_steps, num_rows, _ = xs.shape
    from_x = product.multiply(xs.flatten(0, 1), w_x, bias)
    packed = product.pack(w_h, num_rows, num_steps)
    outputs = xs.new_empty(num_steps, num_rows, w_h.shape[1])
    c = c.clone()
    for x, output in zip(from_x.view(num_steps, num_rows, -1).unbind(), outputs.unbind(), strict=True):
        i, f, g, o = product.multiply_add(h, packed, x).chunk(4, dim=1)
        g.tanh_()
        c.mul_(f.sigmoid_()).addcmul_(i.sigmoid_(), g)
        h = torch.mul(o.sigmoid_(), c.tanh(), out=output)
    return outputs, c


class _LSTM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xs, h0, c0, w_x, w_h, bias):
        num_steps, num_rows, _ = xs.shape
        size = w_h.shape[1]
        from_x = product.multiply(xs.flatten(0, 1), w_x, bias)
        packed = product.pack(w_h, num_rows, num_steps)
        gates = from_x.view(num_steps, num_rows, 4, size)
        cells = xs.new_empty(num_steps + 1, num_rows, size)
        outputs = xs.new_empty(num_steps, num_rows, size)
        cells[0] = c0
        h, c = h0, cells[0]
        rows = zip(gates.unbind(), cells[1:].unbind(), outputs.unbind(), strict=True)
        for gate, new, output in rows:
            z = product.multiply_add(h, packed, gate.view(num_rows, 4 * size)).view_as(gate)
            torch.sigmoid(z, out=gate)
            i, f, g, o = gate.unbind(1)
            torch.tanh(z[:, 2], out=g)
            torch.mul(f, c, out=new).addcmul_(i, g)
            h = torch.mul(o, new.tanh(), out=output)
            c = new
        ctx.save_for_backward(xs, h0, w_x, w_h, gates, cells, outputs)
        return outputs, cells[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, d_outputs, d_c):
        xs, h0, w_x, w_h, gates, cells, outputs = ctx.saved_tensors
        num_steps, num_rows, size = outputs.shape
        d_outputs = d_outputs.contiguous()
        i, f, g, o = gates.unbind(2)
        tanh_c = cells[1:].tanh()
        factor = torch.empty_like(gates)
        torch.mul(i - i * i, g, out=factor[:, :, 0])
        torch.mul(f - f * f, cells[:-1], out=factor[:, :, 1])
        torch.mul(i, 1 - g * g, out=factor[:, :, 2])
        torch.mul(o - o * o, tanh_c, out=factor[:, :, 3])
        h_to_c = o * (1 - tanh_c * tanh_c)
        packed = product.pack(w_h.t(), num_rows, num_steps)
        d_c, d_h = d_c.clone(), d_outputs[-1]
        zero = torch.zeros_like(h0)
        for t in range(num_steps - 1, -1, -1):
            d_gate = factor[t]
            d_c.addcmul_(d_h, h_to_c[t])
            d_gate[:, :3].mul_(d_c.unsqueeze(1))
            d_gate[:, 3].mul_(d_h)
            d_c.mul_(f[t])
            d_h = product.multiply_add(d_gate.view(num_rows, -1), packed, d_outputs[t - 1] if t else zero)
        d_gates = factor.view(num_steps * num_rows, -1)
        d_xs = product.multiply(d_gates, w_x.t()).view_as(xs)
        transposed = d_gates.t().contiguous()
        d_w_x = product.multiply(transposed, xs.flatten(0, 1).t())
        before = torch.cat([h0[None], outputs[:-1]]).flatten(0, 1)
        d_w_h = product.multiply(transposed, before.t())
        return d_xs, d_h, d_c, d_w_x, d_w_h, d_gates.sum(0) if ctx.needs_input_grad[5] else None
