"""A Triton kernel for the rows of a mixture likelihood: one pass for log p(y), one for its derivative, in place.

A row z [V] of a component has scores s = log g(z), p = softmax(s). Over blocks of V the kernel keeps the greatest score
and the sum of exponentials relative to it, so that nothing underflows and no row is computed twice; then it writes

    d (-log p(y)) / d z_v = s'(z_v) (p_v - [v = y])

over z. torch's operations need four to ten passes over the matrix, and wait for the device to see which rows underflow.
`mixture.py` chooses the kernel; the products before and after it stay in `fast/matmul.py`.

The kernel runs on GPUs of CUDA where triton is installed, as it is with torch for CUDA on Linux, and a C compiler,
which triton needs. ELMAN_TRITON=0 disables it; ELMAN_TRITON=1 makes its absence an error, and computes it on a CPU in
Triton's interpreter (TRITON_INTERPRET=1), for tests.
"""

# ruff: noqa: ANN001, ANN202 - Triton reads the annotations of kernels

import os
import shutil
from importlib.util import find_spec

import torch
from torch import Tensor

from elman.errors import UserError

ACTIVATIONS = ("softmax", "sigsoftmax")
"""Those the kernel computes."""

BLOCK = 4096
"""Symbols that are read at once; a power of two."""


def wanted(value: str | None) -> bool:
    """Whether the kernel is used with this value of ELMAN_TRITON; without one, where a GPU can run it."""
    if value is not None:
        return value == "1"
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    return torch.cuda.is_available() and find_spec("triton") is not None and compiler is not None


WANTED = wanted(os.environ.get("ELMAN_TRITON"))

if WANTED:
    try:
        import triton
        import triton.language as tl
    except ImportError:
        raise UserError("ELMAN_TRITON=1 needs the package triton (Linux): pip install 'elman[triton]'") from None

    @triton.jit  # type: ignore[untyped-decorator]
    def _score(z, sigsoftmax: tl.constexpr):  # type: ignore[no-untyped-def]
        if sigsoftmax:
            z = z + tl.minimum(z, 0.0) - tl.log(1.0 + tl.exp(-tl.abs(z)))
        return z

    @triton.jit  # type: ignore[untyped-decorator]
    def _rows(  # type: ignore[no-untyped-def]
        z_rows,
        targets,
        log_probs,
        stride,
        num_symbols: tl.constexpr,
        sigsoftmax: tl.constexpr,
        derive: tl.constexpr,
        block: tl.constexpr,
    ):
        row = tl.program_id(0).to(tl.int64)
        z_row, y = z_rows + row * stride, tl.load(targets + row)
        score_y = _score(tl.load(z_row + y), sigsoftmax)
        top, total = score_y, score_y * 0.0
        for start in range(0, num_symbols, block):
            at = start + tl.arange(0, block)
            score = _score(tl.load(z_row + at, mask=at < num_symbols, other=float("-inf")), sigsoftmax)
            higher = tl.maximum(top, tl.max(score, 0))
            total = total * tl.exp(top - higher) + tl.sum(tl.exp(score - higher), 0)
            top = higher
        log_total = top + tl.log(total)
        tl.store(log_probs + row, score_y - log_total)
        if derive:
            for start in range(0, num_symbols, block):
                at = start + tl.arange(0, block)
                z = tl.load(z_row + at, mask=at < num_symbols, other=0.0)
                d_z = tl.exp(_score(z, sigsoftmax) - log_total) - (at == y).to(z.dtype)
                if sigsoftmax:
                    d_z = d_z * (1.0 + 1.0 / (1.0 + tl.exp(z)))
                tl.store(z_row + at, d_z, mask=at < num_symbols)


def applies(like: Tensor, activation: str) -> bool:
    """Whether the kernel computes rows of this device and type with this activation."""
    if not WANTED or activation not in ACTIVATIONS:
        return False
    return like.dtype == torch.float32 and (like.is_cuda or os.environ.get("TRITON_INTERPRET") == "1")


def log_prob(z: Tensor, y: Tensor, activation: str, *, derive: bool = False) -> Tensor:
    """Log p(y) [R] of rows z [R, V]; with `derive` they are overwritten by the derivative of -log p(y)."""
    assert z.stride(1) == 1
    found = z.new_empty(len(z))
    if len(z):
        with torch.cuda.device_of(z):
            _rows[(len(z),)](z, y, found, z.stride(0), z.shape[1], activation == "sigsoftmax", derive, BLOCK)
    return found
