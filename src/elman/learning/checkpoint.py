"""Tensors and facts in one file: safetensors, with JSON in its header. No pickle: loading a model runs no code.

The file is written whole or not at all, and a digest over everything in it is checked when it is read.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from elman.errors import UserError
from elman.files import replacing


def save(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> str:
    """Write a checkpoint and return its digest; the previous file stays until the new one is complete.

    Raises:
        UserError: the disk is full or the folder cannot be written.

    """
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(facts, sort_keys=True)
    digest = digest_of(plain, text)
    with replacing(path) as temporary:
        try:
            save_file(plain, temporary, {"facts": text, "digest": digest})
        except SafetensorError as error:
            raise OSError(*_os_error(error)) from error
    return digest


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a checkpoint onto the CPU.

    Raises:
        UserError: no such file, truncated, altered, or not one of ours.

    """
    if not path.is_file():
        raise UserError(f"{path}: no such model file; give a run folder in which training has saved one")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, RuntimeError) as error:
        raise UserError(f"{path}: truncated or not a model file ({error}); restore it or train again") from None
    if not {"facts", "digest"} <= header.keys():
        raise UserError(f"{path}: not written by elman (its header has no digest); give a run folder")
    if digest_of(tensors, header["facts"]) != header["digest"]:
        raise UserError(f"{path}: altered since it was written (its digest does not match); restore it or train again")
    return tensors, json.loads(header["facts"])


def digest_of(tensors: Mapping[str, Tensor], text: str = "") -> str:
    """SHA-256 over names, types, shapes and bytes, in the order of the names."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _os_error(error: SafetensorError) -> tuple[int, str]:
    text = str(error)
    number = next((int(part.split(")")[0]) for part in text.split("os error ")[1:]), 5)
    return number, text
