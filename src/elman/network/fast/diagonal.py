"""Linear recurrences h_t = a_t h_{t-1} + b_t, elementwise, real or complex, over all steps at once.

Two forms with one signature (a [T, B, ...], b of the same shape, h_0 [B, ...]) -> h [T, B, ...]:

    loop       T steps in place, with the gradients of all steps written out: O(T) work
    doubling   the associative product (a', b') o (a, b) = (a' a, a' b + b'), applied log2(T) times to all steps
               (Hillis & Steele 1986; Blelloch 1990): O(T log T) work, O(log T) operations

Neither divides by a product of factors. `scan` chooses: on a CPU `loop`, elsewhere `doubling`; `benchmarks/scan.py`
measures them, and two forms that were slower.
"""

from typing import Any

import torch
from torch import Tensor

from elman.network.fast.matmul import differentiable_once


def scan(a: Tensor, b: Tensor, start: Tensor) -> Tensor:
    """The states h [T, B, ...] after each step, T >= 1, in the type of `start`; differentiable once on a CPU."""
    a, b = (part if part.dtype == start.dtype else part.to(start.dtype) for part in (a, b))
    return loop(a, b, start) if a.device.type == "cpu" else doubling(a, b, start)


def plain(a: Tensor, b: Tensor, start: Tensor) -> Tensor:
    """The recurrence as it is written, to which the others are compared."""
    states = []
    for factor, drive in zip(a, b, strict=True):
        start = factor * start + drive
        states.append(start)
    return torch.stack(states)


def loop(a: Tensor, b: Tensor, start: Tensor) -> Tensor:
    """One multiplication and addition a step, forwards and backwards; differentiable once."""
    return _Loop.apply(a, b, start)  # type: ignore[no-untyped-call]


class _Loop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, start: Tensor) -> Tensor:
        states = torch.empty_like(b)
        h = start
        for factor, drive, state in zip(a, b, states, strict=True):
            h = torch.addcmul(drive, factor, h, out=state)
        ctx.save_for_backward(a, start, states)
        ctx.precision = "float32"
        return states

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """d_t = g_t + conj(a_{t+1}) d_{t+1} is the gradient of b_t, d_t conj(h_{t-1}) of a_t."""
        a, start, states = ctx.saved_tensors
        factors = a.conj().resolve_conj()
        d_b = backwards(gradient, factors)
        d_a = None
        if ctx.needs_input_grad[0]:
            d_a = torch.empty_like(states)
            torch.mul(d_b[0], start.conj(), out=d_a[0])
            torch.mul(d_b[1:], states[:-1].conj(), out=d_a[1:])
        return d_a, d_b, factors[0] * d_b[0]


def backwards(gradient: Tensor, factors: Tensor) -> Tensor:
    """The gradients d_t = g_t + a_{t+1} d_{t+1} of states [T, B, ...] of which each is d h_t / d h_{t-1} = a_t."""
    found = torch.empty_like(factors)
    found[-1] = gradient[-1]
    for t in range(len(factors) - 2, -1, -1):
        torch.addcmul(gradient[t], factors[t + 1], found[t + 1], out=found[t])
    return found


def doubling(a: Tensor, b: Tensor, start: Tensor) -> Tensor:
    """Pairs of steps, then of pairs, and so on, each for all places at once; differentiable any number of times."""
    states = torch.cat([(a[0] * start + b[0]).unsqueeze(0), b[1:]])
    factors, reach = a, 1
    while reach < len(a):
        states = torch.cat([states[:reach], factors[reach:] * states[:-reach] + states[reach:]])
        if 2 * reach < len(a):
            factors = torch.cat([factors[:reach], factors[reach:] * factors[:-reach]])
        reach *= 2
    return states
