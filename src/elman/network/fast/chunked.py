"""Recurrences of matrices, many steps at once: products of matrices in a chunk, and a state from chunk to chunk.

    S_t = diag(w_t) S_{t-1} + b_t (a_t' S_{t-1}) + k_t v_t'              y_t = S_t' q_t

S [K, V] per head; w in (0, 1], a number per head or one per row; a and b are left out where the transition is diagonal.
With G_t the sum of log w up to t within the chunk, S_0 the state before it, and u_t = S_{t-1}' a_t,

    S_t = e^{G_t} S_0 + sum_{s <= t} e^{G_t - G_s} (b_s u_s' + k_s v_s')
    u_t = S_0' (e^{G_{t-1}} a_t) + sum_{s < t} e^{G_{t-1} - G_s} [(a_t b_s) u_s + (a_t k_s) v_s]

so that all u of a chunk solve one triangular system: the chunkwise form of linear attention (Hua et al. 2022), SSD
(Dao & Gu 2024), the delta rule (Yang et al. 2024) and RWKV-7 (Peng et al. 2025).

A number per head is applied as e^{G_t - G_s}, which never exceeds 1; each s and t has a sum of its own (`segsum` of
Dao & Gu 2024), as the difference of two large sums would lose the digits of a small one. Factors per row enter as
e^{G_t} and e^{-G_s}: they must not fall below e^-60 over a chunk in float32, and the factors of RWKV-7 do not, being at
least e^-0.61 a step.

On GPUs with ELMAN_FLA=1 they are computed by the Triton kernels of flash-linear-attention (Yang & Zhang 2024), where
fla-core is installed:

    simple GLA  S_t = e^{g_t} S_{t-1} + k_t v_t'                                  mLSTM, Mamba-2
    GLA         the same with a number per row
    DPLR        S_t = diag(e^{g_t}) S_{t-1} + b_t (a_t' S_{t-1}) + k_t v_t'       gated DeltaNet, RWKV-7

What these are given is tested against formulas with the signatures of version 0.6, and agrees with the plain references
in that package; the kernels themselves were never run here. Their products are made by tensor cores, less exact than
float32.

A step that is not finite makes its whole chunk NaN, the steps before it too, since what is masked is multiplied by 0.
"""

import os
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from elman.errors import UserError

ASKED = os.environ.get("ELMAN_FLA") == "1"

if ASKED:
    try:
        from fla.ops.generalized_delta_rule import chunk_dplr_delta_rule
        from fla.ops.gla import chunk_gla
        from fla.ops.simple_gla import chunk_simple_gla
    except ImportError:
        raise UserError("ELMAN_FLA=1 needs the package fla-core (Linux): pip install 'elman[fla]'") from None

LENGTH = 48
"""The most steps of a chunk; a window is divided into equal ones."""


def scan(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_w: Tensor,
    state: Tensor,
    rank_one: tuple[Tensor, Tensor] | None = None,
    length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """All outputs y [T, B, h, V], and the state after them, [B, h, K, V].

    Args:
        q: [T, B, h, K]
        k: [T, B, h, K]
        v: [T, B, h, V]
        log_w: [T, B, h, 1] or [T, B, h, K], at most 0
        state: [B, h, K, V]
        rank_one: a and b, [T, B, h, K] each
        length: the most steps of a chunk; None: `LENGTH`
    """
    if by_triton(q):
        return _by_kernels(q, k, v, log_w, state, rank_one)
    given = [q, k, v, log_w, *(rank_one or ())]
    outputs, most = [], length or LENGTH
    even = -(-len(q) // -(-len(q) // most))
    for parts in zip(*(part.movedim(0, 2).split(even, dim=2) for part in given), strict=True):
        y, state = _chunk(state, *parts)
        outputs.append(y)
    return torch.cat(outputs, dim=2).movedim(2, 0), state


def _chunk(
    state: Tensor, q: Tensor, k: Tensor, v: Tensor, log_w: Tensor, a: Tensor | None = None, b: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The outputs [B, h, L, V] of one chunk, and the state after it; arguments [B, h, L, _]."""
    sums, per_row = log_w.cumsum(2), log_w.shape[-1] > 1
    upto = sums.exp()
    within = (-sums).exp() if per_row else _segments(log_w).exp().tril()
    left = (sums[:, :, -1:] - sums).exp() if per_row else within[:, :, -1:].mT
    y = _pairs(q, k, upto, within) @ v + (q * upto) @ state
    after = upto[:, :, -1].unsqueeze(-1) * state + (k * left).mT @ v
    if a is None or b is None:
        return y, after
    before = pad(upto[:, :, :-1], (0, 0, 1, 0), value=1.0)
    earlier = within if per_row else pad(within[:, :, :-1], (0, 0, 1, 0))
    right = _pairs(a, k, before, earlier, -1) @ v + (a * before) @ state
    system = -_pairs(a, b, before, earlier, -1)  # 1 on the diagonal, which is not read
    u = torch.linalg.solve_triangular(system, right, upper=False, unitriangular=True)
    return y + _pairs(q, b, upto, within) @ u, after + (b * left).mT @ u


def _segments(log_w: Tensor) -> Tensor:
    """G_t - G_s at [.., t, s] for s <= t, of numbers [B, h, L, 1]; no difference of sums, which would cancel."""
    return log_w.expand(*log_w.shape[:-1], log_w.shape[2]).tril(-1).cumsum(2)


def _pairs(x: Tensor, y: Tensor, upto: Tensor, within: Tensor, last: int = 0) -> Tensor:
    """x_t' y_s with what decays from s to t, and 0 above a diagonal, [B, h, L, L].

    A number per head has its decays `within` the chunk, [B, h, L, L]; rows have e^{G_t}, `upto`, and e^{-G_s}.
    """
    if upto.shape[-1] == 1:
        return x @ y.mT * within
    return ((x * upto) @ (y * within).mT).tril(last)


def by_triton(like: Tensor) -> bool:
    """Whether the kernels compute recurrences of tensors of this device."""
    return ASKED and like.is_cuda


def _by_kernels(
    q: Tensor, k: Tensor, v: Tensor, log_w: Tensor, state: Tensor, rank_one: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor]:
    how: dict[str, Any] = {"scale": 1.0, "initial_state": state.contiguous(), "output_final_state": True}
    q, k, v, g = (part.transpose(0, 1).contiguous() for part in (q, k, v, log_w))
    if rank_one is not None:
        a, b = (part.transpose(0, 1).contiguous() for part in rank_one)
        y, after = chunk_dplr_delta_rule(q, k, v, a, b, g.expand_as(q).contiguous(), **how)
    elif g.shape[-1] == 1:
        y, after = chunk_simple_gla(q, k, v, g.squeeze(-1), **how)
    else:
        y, after = chunk_gla(q, k, v, g, **how)
    return y.transpose(0, 1), after
