"""The weights of a model file in eight or sixteen bits, for models that are passed on: a quarter or half of the size.

In eight bits every matrix [O, I] is kept as integers and one scale for each row (`network/fast/int8.py`), which stands
next to it under the name of the matrix with `:scale`; vectors stay float32. In sixteen bits every tensor is float16.
Opening such a file gives float32 again. One rounded product of float32 per weight is the same number on every
processor, so the digest of the float32 weights is stated in the file and checked.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from elman.formats import SCALE
from elman.learning.checkpoint import UNPACKED, digest_of, save
from elman.network.fast.int8 import by_rows

Form: TypeAlias = Literal["int8", "half"]


def pack(tensors: Mapping[str, Tensor], form: Form) -> dict[str, Tensor]:
    """Float32 tensors as a model file keeps them in fewer bits; others are returned as they are."""
    packed = dict[str, Tensor]()
    for name, tensor in tensors.items():
        if tensor.dtype != torch.float32:
            packed[name] = tensor
        elif form == "half":
            packed[name] = tensor.half()
        elif tensor.dim() == 2:
            packed[name], packed[name + SCALE] = by_rows(tensor)
        else:
            packed[name] = tensor
    return packed


def unpack(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The float32 tensors of what `pack` returned; raises ValueError where a matrix and its scales do not fit."""
    whole = dict[str, Tensor]()
    for name, tensor in tensors.items():
        if name.endswith(SCALE):
            continue
        scales = tensors.get(name + SCALE)
        if tensor.dtype == torch.int8 and scales is not None:
            if scales.shape != tensor.shape[:1] or scales.dtype != torch.float32:
                raise ValueError(f"{name}: {tuple(tensor.shape)} with scales {scales.dtype} {tuple(scales.shape)}")
            whole[name] = tensor.float() * scales.unsqueeze(1)
        else:
            whole[name] = tensor.float() if tensor.dtype == torch.float16 else tensor
    return whole


def save_packed(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], form: Form) -> str:
    """Write a model in fewer bits, and the digest of what `checkpoint.load` makes of it, which is returned."""
    packed = pack(tensors, form)
    digest = digest_of(unpack(packed))
    save(path, packed, {**facts, UNPACKED: digest})
    return digest
