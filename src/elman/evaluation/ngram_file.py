"""The counts of an n-gram model as one safetensors file, checked by a digest when it is read."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from elman.errors import UserError
from elman.evaluation.ngram_levels import Int64s
from elman.files import write_atomic


def save_counts(path: Path, header: dict[str, str], tensors: Mapping[str, Int64s]) -> None:
    """Write the counts of a model, with what it is.

    Raises:
        UserError: the folder cannot be written or the disk is full.

    """
    write_atomic(path, to_bytes(dict(tensors), {**header, "digest": _digest(header, tensors)}))


def load_counts(path: Path, model: str) -> tuple[int, dict[str, Int64s]]:
    """The vocabulary size and the counts of a file that `save_counts` wrote.

    Raises:
        UserError: no such file, truncated, altered, or not a model of this kind.

    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; give the file of a saved {model} model")
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: truncated or not a model file ({error}); train the {model} model again") from None
    digest = header.pop("digest", None)
    if header.get("model") != model:
        raise UserError(f"{path}: found {header.get('model', 'something else')}; give the file of a {model} model")
    if digest != _digest(header, tensors):
        raise UserError(f"{path}: altered since it was written (its digest does not match); train the model again")
    return int(header["vocabulary_size"]), tensors


def _digest(header: Mapping[str, str], tensors: Mapping[str, Int64s]) -> str:
    digest = hashlib.sha256(repr(sorted(header.items())).encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tensors[name].shape}".encode())
        digest.update(np.ascontiguousarray(tensors[name]).data)
    return digest.hexdigest()
