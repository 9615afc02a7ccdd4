"""The recurrences of `chunked.py` by the Triton kernels of flash-linear-attention (Yang & Zhang 2024), on GPUs.

    simple GLA  S_t = e^{g_t} S_{t-1} + k_t v_t'                                  mLSTM, Mamba-2
    GLA         the same with a number per row
    DPLR        S_t = diag(e^{g_t}) S_{t-1} + b_t (a_t' S_{t-1}) + k_t v_t'       gated DeltaNet, RWKV-7

They are taken where ELMAN_FLA=1 is set and fla-core is installed. What they are given is tested against formulas with
the signatures of version 0.6, and agrees with the plain references in that package; the kernels themselves were never
run here. Their products are those of tensor cores, less exact than float32.
"""

import os
from typing import Any

from torch import Tensor

from elman.errors import UserError

ASKED = os.environ.get("ELMAN_FLA") == "1"

if ASKED:
    try:
        from fla.ops.generalized_delta_rule import chunk_dplr_delta_rule
        from fla.ops.gla import chunk_gla
        from fla.ops.simple_gla import chunk_simple_gla
    except ImportError:
        raise UserError("ELMAN_FLA=1 needs the package fla-core (Linux): pip install 'elman[fla]'") from None


def applies(like: Tensor) -> bool:
    """Whether the kernels compute recurrences of tensors of this device."""
    return ASKED and like.is_cuda


def by_kernels(
    q: Tensor, k: Tensor, v: Tensor, log_w: Tensor, state: Tensor, rank_one: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor]:
    """Outputs and state of `chunked.chunked`, with its arguments."""
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
