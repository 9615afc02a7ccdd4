"""Which form computes what: every size by which kernels, libraries and plain loops are chosen.

A choice depends on shapes, type, precision, device and the features of the processor, never on a timing: the same
computation takes the same way every time, so that a training that was stopped continues bit for bit.
"""

import os
from functools import cache
from types import ModuleType
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from elman.network.fast import precision

PACKING_USES = 4
"""A factor used fewer times is not laid out again, which costs about as much as reading it three times."""

LEAST_ONEDNN = 1 << 21
"""Multiply-adds of a float32 product from which it is oneDNN's. Below, torch's own takes from a quarter of the time
(one row of 64) to about the same (ten rows of 200; `benchmarks/recurrent.py small`)."""

LEAST_MULTIPLY_ADDS = 1 << 20
"""Smaller products stay float32: there, rounding the factors takes as long as is gained (`benchmarks/precision.py`)."""

LEAST_ROWS = 16
"""So do products in which a factor meets fewer rows altogether: rounding it then costs more than multiplying by it."""

LIBRARY_LSTM: dict[precision.Precision, int] = {"float32": 1100, "bf16": 300, "int8": 0}
"""Below this width the library's LSTM runs on a CPU, in float32, and from it on the hoisted form."""

CACHED = 1 << 16
"""Units of all rows of the steps that are computed together where a window is long."""

BF16_LSTM = 512
"""With bf16 products the library's LSTM is given bf16 tensors below this width, of `BF16_ROWS` rows or more."""

BF16_ROWS = 4

LIBRARY_GRU = 5000
"""Up to this many units of all rows together, of 512 in a row at most, the library's GRU is used without gradients."""

PERSISTENT = os.environ.get("ELMAN_PERSISTENT") == "1"
"""Whether recurrent layers that fit on a GPU are computed by one kernel (`persistent.py`)."""

OPERATORS = ("lstm", "gru-after")
"""The cells whose fast form on a CPU is an operator that torch.compile calls."""


@runtime_checkable
class Named(Protocol):
    """A cell."""

    @property
    def name(self) -> str:
        """Its equations."""


def plain(like: Tensor, cell: Named | None = None) -> bool:
    """Whether the plain form is taken: tools of torch follow it (`followed`), or it has no numbers or 16 bits.

    A `cell` with an operator is compiled as that. Exported without gradients, windows of any number of steps keep their
    fast form, since a loop over the plain form would fix the number.
    """
    if like.is_meta or (cell is None and like.dtype.itemsize == 2):
        return True
    if torch.compiler.is_exporting():
        return cell is None or torch.is_grad_enabled() or isinstance(like.shape[0], int)
    if torch.compiler.is_compiling():
        has_operator = cell is not None and cell.name in OPERATORS
        return not has_operator or like.is_cuda
    return followed()


def followed() -> bool:
    """Whether torch's compiler, export, jit, func or forward_ad follows what is computed."""
    if torch.compiler.is_compiling() or torch._C._is_tracing() or forward_ad._current_level >= 0:
        return True
    return torch._C._functorch.peek_interpreter_stack() is not None


@cache
def _onednn_works(dtype: torch.dtype) -> bool:
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        factor = torch.ops.mkldnn._reorder_linear_weight(torch.eye(2, dtype=dtype), 1)
        product = torch.ops.mkldnn._linear_pointwise(torch.ones(1, 2, dtype=dtype), factor, None, "none", [], "")
    except (AttributeError, RuntimeError):
        return False
    return bool(product.eq(1).all())


def uses_onednn(like: Tensor) -> bool:
    """Whether oneDNN computes the products of tensors of this device and type."""
    if not like.is_cpu or like.dtype not in (torch.float32, torch.bfloat16):
        return False
    return bool(torch.backends.mkldnn.enabled) and _onednn_works(like.dtype)


def is_large(factor: Tensor, rows: int) -> bool:
    """Whether products of this factor with `rows` rows are large enough for oneDNN, where there is a choice."""
    return factor.dtype != torch.float32 or rows * factor.numel() >= LEAST_ONEDNN


def by_onednn(x: Tensor, factor: Tensor) -> bool:
    """Whether x factor^T is oneDNN's: also of a factor that is laid out for it."""
    return uses_onednn(x) and (factor.is_mkldnn or is_large(factor, x.shape[0]))


def worth_rounding(factor: Tensor, rows: int, uses: int = 1) -> bool:
    """Whether a factor is rounded to bf16 for `uses` products with `rows` rows each."""
    if precision.chosen() != "bf16" or factor.dtype != torch.float32:
        return False
    return rows * uses >= LEAST_ROWS and rows * factor.numel() >= LEAST_MULTIPLY_ADDS


def in_int8(factor: Tensor) -> bool:
    """Whether products with this factor are computed in eight bits (`int8.py`)."""
    if precision.chosen() != "int8" or not isinstance(factor, nn.Parameter):
        return False
    return factor.device.type == "cpu" and factor.dtype == torch.float32


def in_bf16(x: Tensor, factor: Tensor) -> bool:
    """Whether x factor^T is computed in bf16: also wherever one of them has been rounded already."""
    return torch.bfloat16 in (x.dtype, factor.dtype) or worth_rounding(factor, x.shape[0])


def small_step(xs: Tensor, *matrices: Tensor | None) -> bool:
    """Whether inputs [T, B, I] are one step with small products of float32 on a CPU, and no gradient is asked for.

    What a fast form prepares for many steps then costs more than it saves.
    """
    if torch.is_grad_enabled() or xs.shape[0] > 1 or not xs.is_cpu or precision.chosen() != "float32":
        return False
    return not any(factor is not None and is_large(factor, xs.shape[1]) for factor in matrices)


def lays_out_second(d: Tensor, x: Tensor) -> bool:
    """Whether d^T x, [O, I], d [N, O] and x [N, I], is formed as (x^T d)^T: oneDNN copies the first factor.

    The result is then laid out again when it is added to a gradient.
    """
    (num_rows, outputs), inputs = d.shape, x.shape[1]
    if not (uses_onednn(d) and (is_large(d, inputs) or in_bf16(x, d))):
        return False
    return inputs * (num_rows + outputs) < num_rows * outputs


def in_cache(windows: Tensor) -> tuple[Tensor, ...]:
    """An array [T, B, ..., H] in parts of few enough steps that what is formed of them stays in the cache."""
    steps = CACHED // (windows.shape[1] * windows.shape[-1])
    return windows.split(max(1, steps))


@cache
def _has_bf16() -> bool:
    """Whether the processor multiplies in bf16: without these instructions oneDNN's LSTM of bf16 is slow."""
    return torch.cpu._is_avx512_bf16_supported() and _onednn_works(torch.bfloat16)


def library_lstm(xs: Tensor, hidden_size: int, *, exact: bool = False) -> torch.dtype | None:
    """The type in which the library's LSTM computes on inputs [T, B, I], cuDNN on CUDA, oneDNN on the CPU; or None."""
    kind = precision.chosen()
    if xs.is_cuda:
        return _type_on_cuda(xs)
    if xs.shape[0] < PACKING_USES or not uses_onednn(xs):
        return None
    if kind == "bf16" and not exact and hidden_size < BF16_LSTM and xs.shape[1] >= BF16_ROWS and _has_bf16():
        return torch.bfloat16
    return xs.dtype if hidden_size < LIBRARY_LSTM[kind] else None


def library_gru(xs: Tensor, hidden_size: int) -> torch.dtype | None:
    """The type in which the library's GRU computes: on CUDA, and on the CPU where little is computed; or None."""
    if xs.is_cuda:
        return _type_on_cuda(xs)
    if torch.is_grad_enabled() or precision.chosen() != "float32" or not xs.is_cpu:
        return None
    few = hidden_size <= 512 and xs.shape[1] * hidden_size <= LIBRARY_GRU
    return xs.dtype if len(xs) == 1 or few else None


def _type_on_cuda(xs: Tensor) -> torch.dtype:
    """With bf16 products all of the library's computation on CUDA is in bf16."""
    return torch.bfloat16 if xs.dtype == torch.float32 and precision.chosen() == "bf16" else xs.dtype


def persistent(xs: Tensor) -> ModuleType | None:
    """The kernel of a whole window for inputs [T, B, I], which may still refuse a layer; None: it is not requested."""
    if not (PERSISTENT and xs.is_cuda):
        return None
    from elman.network.fast import persistent

    return persistent


def triton(like: Tensor, activation: str) -> ModuleType | None:
    """The kernel of the rows of a likelihood, where it computes those of this device and type with this activation."""
    if not like.is_cuda and {"ELMAN_TRITON", "TRITON_INTERPRET"}.isdisjoint(os.environ):
        return None
    from elman.network.fast import triton_rows

    return triton_rows if triton_rows.applies(like, activation) else None
