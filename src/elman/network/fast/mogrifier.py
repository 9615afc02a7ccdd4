"""The Mogrifier over a whole sequence: equal to the plain loop over `cells.mogrifier`, and faster where it is wide.

T steps, B rows, I inputs, H units; gates i, f, g, o. As in `fast.lstm`, the factors of the gradients are formed
for all steps at once, and each weight gradient is one product. Products with the inputs stay within the loop, since x
is gated by the state. A gate 2 sigm(a) is 1 + tanh(a / 2), so the left factor of each round's map is halved once.
"""

from collections.abc import Sequence as Items
from typing import Any, NamedTuple

import torch
from torch import Tensor

from elman.network.fast import matmul, precision
from elman.network.fast.lstm import back_through_gates, factors
from elman.network.fast.matmul import Arrays, State, differentiable_once


def scan(w: Arrays, xs: Tensor, state: State, maps: Items[Items[Tensor]], *, capped: bool) -> tuple[Tensor, State]:
    """Outputs [T, B, H] over xs [T, B, I], and the state (h, c) after them; differentiable once.

    `maps` has the map of each round, or its two factors where it has a low rank; `capped`: i <= 1 - f.
    """
    form = _Form(len(maps), len(maps[0]) if maps else 1, capped)
    h, c = state
    bias = matmul.sum_biases(w.bias_ih, w.bias_hh)
    factors = [factor for one in maps for factor in one]
    if torch.is_grad_enabled():
        arrays = (xs, h, c, w.weight_ih, w.weight_hh, bias, *factors)
        outputs, c = _Mogrifier.apply(form, w.exact, *arrays)  # type: ignore[no-untyped-call]
    else:
        run = _run(form, w.exact, xs, h, c, w.weight_ih, w.weight_hh, bias, *factors, keep=False)
        outputs, c = run.outputs, run.cells[-1].clone()
    return outputs, (outputs[-1].clone(), c)


class _Form(NamedTuple):
    rounds: int
    factors: int
    capped: bool

    def halved(self, maps: Items[Tensor]) -> list[list[Tensor]]:
        """The factors of each round's map, the left one halved."""
        starts = range(0, self.rounds * self.factors, self.factors)
        return [[maps[at] * 0.5, *maps[at + 1 : at + self.factors]] for at in starts]


class _Round(NamedTuple):
    """A round at all steps: u = tanh(a / 2), the result v + u v of gating v [T, B, W], and `middle` [T, B, rank]."""

    u: Tensor
    result: Tensor
    middle: Tensor | None


class _Run(NamedTuple):
    """What the steps leave: outputs [T, B, H], cells [T + 1, B, H], gates [T, B, 4, H] and the rounds."""

    outputs: Tensor
    cells: Tensor
    gates: Tensor
    rounds: list[_Round]


def _run(
    form: _Form,
    exact: bool,
    xs: Tensor,
    h: Tensor,
    c: Tensor,
    w_x: Tensor,
    w_h: Tensor,
    bias: Tensor | None,
    *maps: Tensor,
    keep: bool,
) -> _Run:
    (num_steps, num_rows, inputs), size = xs.shape, h.shape[1]
    of_inputs = "float32" if exact else precision.chosen()

    def space(steps: int, *shape: int) -> Tensor:
        return xs.new_empty(steps if keep else 1, num_rows, *shape).expand(steps, num_rows, *shape)

    def round_of(number: int, of_map: list[Tensor]) -> _Round:
        width = size if number % 2 else inputs
        return _Round(
            space(num_steps, width),
            space(num_steps, width),
            space(num_steps, len(of_map[1])) if form.factors == 2 else None,
        )

    halved = form.halved(maps)
    rounds = [round_of(number, of_map) for number, of_map in enumerate(halved)]
    packed = [[matmul.pack(factor, num_rows, num_steps) for factor in of_map] for of_map in halved]
    with precision.products_in(of_inputs):
        packed_x = matmul.pack(w_x, num_rows, num_steps)
    packed_h = matmul.pack(w_h, num_rows, num_steps)
    gates, cells = space(num_steps, 4, size), space(num_steps + 1, size)
    outputs = xs.new_empty(num_steps, num_rows, size)
    c = cells[0].copy_(c)
    for t, x in enumerate(xs.unbind()):
        for number, (of_map, one) in enumerate(zip(packed, rounds, strict=True)):
            source, target = (x, h) if number % 2 else (h, x)
            if one.middle is not None:
                source = one.middle[t].copy_(matmul.multiply(source, of_map[1]))
            u = torch.tanh(matmul.multiply(source, of_map[0]), out=one.u[t])
            gated = torch.addcmul(target, target, u, out=one.result[t])
            x, h = (x, gated) if number % 2 else (gated, h)
        with precision.products_in(of_inputs):
            z = matmul.multiply(x, packed_x, bias)
        z = matmul.multiply_add(h, packed_h, z).view(num_rows, 4, size)
        i, f, g, o = torch.sigmoid(z, out=gates[t]).unbind(1)
        torch.tanh(z[:, 2], out=g)
        c = torch.mul(f, c, out=cells[t + 1]).addcmul_(torch.minimum(i, 1 - f) if form.capped else i, g)
        h = torch.mul(o, c.tanh(), out=outputs[t])
    return _Run(outputs, cells, gates, rounds)


class _Mogrifier(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, form: _Form, exact: bool, xs: Tensor, h0: Tensor, *arrays: Tensor) -> tuple[Tensor, Tensor]:
        run = _run(form, exact, xs, h0, *arrays, keep=True)
        _, w_x, w_h, _, *maps = arrays
        kept = (part for one in run.rounds for part in one)
        matmul.keep(ctx, xs, h0, w_x, w_h, run.outputs, run.cells, run.gates, *maps, *kept)
        ctx.form = form
        return run.outputs, run.cells[-1].clone()

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, d_outputs: Tensor, d_c: Tensor) -> tuple[Tensor | None, ...]:
        xs, h0, w_x, w_h, outputs, cells, gates, *rest = ctx.saved_tensors
        form: _Form = ctx.form
        count = form.rounds * form.factors
        halved, kept = form.halved(rest[:count]), rest[count:]
        rounds = [_Round(*kept[at : at + 3]) for at in range(0, 3 * form.rounds, 3)]
        num_steps, num_rows, _ = outputs.shape
        reads = _reads(xs, torch.cat([h0[None], outputs[:-1]]), rounds)
        d_z, h_to_c = (_capped_factors if form.capped else factors)(gates, cells)
        d_sums = [(1 - one.u * one.u).mul_(target) for one, (_, target) in zip(rounds, reads, strict=False)]
        d_middles = [None if one.middle is None else torch.empty_like(one.middle) for one in rounds]
        back_x, back_h = (matmul.pack(factor.t(), num_rows, num_steps) for factor in (w_x, w_h))
        back = [[matmul.pack(factor.t(), num_rows, num_steps) for factor in of_map] for of_map in halved]
        d_xs, d_c = torch.empty_like(xs), d_c.clone()
        earlier = (*d_outputs[:-1].unbind()[::-1], torch.zeros_like(h0))
        d_h = d_outputs[-1]
        for t, d_output in zip(reversed(range(num_steps)), earlier, strict=True):
            step = back_through_gates(d_z[t], d_h, d_c, h_to_c[t], gates[t, :, 1])
            d_x, d_h = matmul.multiply(step, back_x), matmul.multiply(step, back_h)
            for number in reversed(range(form.rounds)):
                d_source, d_target = (d_x, d_h) if number % 2 else (d_h, d_x)
                d = d_sums[number][t].mul_(d_target)
                if (d_middle := d_middles[number]) is not None:
                    d = d_middle[t].copy_(matmul.multiply(d, back[number][0]))
                d_source = matmul.multiply_add(d, back[number][-1], d_source)
                d_target.addcmul_(d_target, rounds[number].u[t])
                d_x, d_h = (d_source, d_target) if number % 2 else (d_target, d_source)
            d_xs[t] = d_x
            d_h = d_h + d_output
        x, h = reads[-1] if form.rounds % 2 else reads[-1][::-1]
        d_w_x, d_w_h, d_bias = _of_weights(d_z, x, h)
        d_maps = _of_maps(rounds, reads, d_sums, d_middles)
        return None, None, d_xs, d_h, d_c, d_w_x, d_w_h, d_bias if ctx.needs_input_grad[7] else None, *d_maps


def _reads(xs: Tensor, before: Tensor, rounds: Items[_Round]) -> list[tuple[Tensor, Tensor]]:
    """What each round reads and what it gates, and after all rounds what the next one would."""
    x, h = xs, before
    reads = [(h, x)]
    for number, one in enumerate(rounds, 1):
        x, h = (one.result, h) if number % 2 else (x, one.result)
        reads.append((x, h) if number % 2 else (h, x))
    return reads


def _of_weights(d_z: Tensor, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of W_x, W_h and the bias, from the gradients of the sums [T, B, 4, H] and what was multiplied."""
    flat = d_z.flatten(0, 1).flatten(1)
    low = matmul.rounded(flat, min(x.shape[2], h.shape[2]))
    d_z_t = low.t().contiguous()
    return (
        matmul.multiply(d_z_t, x.flatten(0, 1).t()),
        matmul.multiply(d_z_t, h.flatten(0, 1).t()),
        d_z_t.sum(1) if low is flat else flat.sum(0),
    )


def _of_maps(
    rounds: Items[_Round], reads: Items[tuple[Tensor, Tensor]], d_sums: Items[Tensor], d_middles: Items[Tensor | None]
) -> list[Tensor]:
    found = []
    for one, (source, _), d_sum, d_middle in zip(rounds, reads, d_sums, d_middles, strict=False):
        flat, read = d_sum.flatten(0, 1), source.flatten(0, 1)
        left = read if one.middle is None else one.middle.flatten(0, 1)
        found.append(matmul.multiply(flat.t(), left.t()).mul_(0.5))
        if d_middle is not None:
            found.append(matmul.multiply(d_middle.flatten(0, 1).t(), read.t()))
    return found


def _capped_factors(gates: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
    """As `lstm.factors` where the input gate is min(i, 1 - f): above 1 - f it is f that decides, not i."""
    found, h_to_c = factors(gates, cells)
    i, f, g, _ = gates.unbind(2)
    above = i > 1 - f
    found[:, :, 0].masked_fill_(above, 0)
    found[:, :, 1].sub_((f - f * f) * g * above)
    found[:, :, 2].copy_(torch.minimum(i, 1 - f) * (1 - g * g))
    return found, h_to_c
