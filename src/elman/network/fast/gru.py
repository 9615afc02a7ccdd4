"""Both gated recurrent units over a whole sequence: equal to the plain loops over its steps, and faster.

T steps, B rows, I inputs, H units; gates r, z, n. As in `fast.lstm`, the product with the inputs is
hoisted out of the loop, the factors of d h are formed for all steps at once, and each weight gradient is one
product.

Without gradients the library's GRU, whose loop is compiled, runs where it is faster: for single steps (of a layer only
those with large products; small ones are the plain step), and where little is computed in a step. Microseconds of a
step (one thread of an AMD Zen 5, torch 2.13, medians while other work ran;
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

from typing import Any, Literal

import torch
from torch import Tensor

from elman.network.fast import matmul, operators, policy
from elman.network.fast.lstm import keeps_workspace, library_parameters
from elman.network.fast.matmul import Arrays, State, differentiable_once


def scan(w: Arrays, xs: Tensor, state: State, reset: Literal["before", "after"] = "after") -> tuple[Tensor, State]:
    """Outputs [T, B, H] over xs [T, B, I], and the state (h,) after them; differentiable once.

    With h' = z h + (1 - z) n, n = tanh(W_n x + b + r (U_n h + b')) where the reset is `after` the product, the form of
    the vendor kernels, and n = tanh(W_n x + b + U_n (r h)) where it is before, as in the thesis (2.29-2.32).
    """
    (h,) = state
    if torch.compiler.is_dynamo_compiling():
        outputs = operator(xs, h, w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh, w.exact)[0]
        return outputs, (outputs[-1].clone(),)
    kernel = policy.persistent(xs)
    if kernel is not None and (found := kernel.scan(f"gru-{reset}", w, xs, state)) is not None:
        return found
    dtype = policy.library_gru(xs, h.shape[1]) if reset == "after" else None
    outputs = hoisted(w, xs, h, reset) if dtype is None else library(w, xs, h, dtype)
    return outputs, (outputs[-1].clone(),)


def hoisted(w: Arrays, xs: Tensor, h: Tensor, reset: Literal["before", "after"] = "after") -> Tensor:
    """The outputs [T, B, H] by this module's own products."""
    form = _ResetAfter if reset == "after" else _ResetBefore
    biases = (w.bias_ih, w.bias_hh) if reset == "after" else (matmul.sum_biases(w.bias_ih, w.bias_hh),)
    found: Tensor = form.apply(xs, h, w.weight_ih, w.weight_hh, *biases, w.exact)  # type: ignore[no-untyped-call]
    return found


def library(w: Arrays, xs: Tensor, h: Tensor, dtype: torch.dtype) -> Tensor:
    """The same by the library in this type."""
    given = xs.to(dtype), h[None].to(dtype), library_parameters(w, dtype)
    return torch.gru(*given, True, 1, 0.0, keeps_workspace(xs), False, False)[0].to(xs.dtype)


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
        z, d_hidden, d_n = gates[:, :, 1], torch.empty_like(gates), torch.empty_like(outputs)
        parts = zip(*map(policy.in_cache, (gates, before, candidates, d_hidden, d_n)), strict=True)
        for of_gates, old, candidate, factor, of_n in parts:
            r, keep, n = of_gates.unbind(2)
            torch.mul(1 - keep, 1 - n * n, out=of_n)
            torch.mul(of_n, r, out=factor[:, :, 2])
            torch.mul(of_n * (r - r * r), candidate, out=factor[:, :, 0])
            torch.mul(old - n, keep - keep * keep, out=factor[:, :, 1])
        packed = matmul.pack(w_h.t(), num_rows, num_steps)
        d_h, earlier = d_outputs[-1], (*d_outputs[:-1].unbind()[::-1], torch.zeros_like(h0))
        for t, d_output in zip(reversed(range(num_steps)), earlier, strict=True):
            d_n[t].mul_(d_h)
            d_gate = d_hidden[t].mul_(d_h.unsqueeze(1)).view(num_rows, -1)
            d_h = matmul.multiply_add(d_gate, packed, torch.addcmul(d_output, d_h, z[t]))
        needs, from_n = ctx.needs_input_grad, 2 * h0.shape[1]
        d_sums, d_n = d_hidden.view(num_steps * num_rows, -1), d_n.flatten(0, 1)
        d_bias_h = d_sums.sum(0) if needs[5] else None
        low = matmul.rounded(d_sums, min(xs.shape[2], h0.shape[1]))
        d_w_h = matmul.multiply_transposed(low, before.flatten(0, 1))
        d_sums[:, from_n:] = d_n  # which alone differs for the inputs
        if low is not d_sums:
            low[:, from_n:] = d_n
        return (
            matmul.multiply(low, w_x.t()).view_as(xs) if needs[0] else None,
            d_h,
            matmul.multiply_transposed(low, xs.flatten(0, 1)),
            d_w_h,
            d_sums.sum(0) if needs[4] else None,
            d_bias_h,
            None,
        )


@torch.library.custom_op("elman::gru", mutates_args=())
def operator(
    xs: Tensor, h: Tensor, w_x: Tensor, w_h: Tensor, bias_x: Tensor | None, bias_h: Tensor | None, exact: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As `hoisted`; also the gates [T, B, 3, H], the candidates [T, B, H], and the number of the precision."""
    outputs, gates, candidates, kind = operators.forward("elman::gru", xs, h, w_x, w_h, bias_x, bias_h, exact)
    return outputs, gates, candidates, kind


@operator.register_fake
def _(xs: Tensor, h: Tensor, *_rest: object) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    (steps, rows, _), size = xs.shape, h.shape[1]
    outputs, candidates = xs.new_empty(steps, rows, size), xs.new_empty(steps, rows, size)
    return outputs, xs.new_empty(steps, rows, 3, size), candidates, torch.empty((), dtype=torch.int64)


operators.register(operator, _ResetAfter, results=1, matrices=slice(2, 4))


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
