"""Checkpoints: tensors and facts in one safetensors file, with JSON in its header, and the best model of a run.

There is no pickle: loading a model runs no code. A file is written completely or not at all, and a digest over
everything in it is checked when it is read.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from elman import config
from elman.errors import UserError
from elman.files import replacing
from elman.formats import opened_tensors, parse_json

CHECKPOINT, MODEL = "checkpoint.safetensors", "model.safetensors"
"""In a run folder: everything that resuming needs, and the best model."""

UNPACKED = "unpacked"
"""The fact of a model file that holds the digest of its weights as float32 (`packing.py`)."""


def save(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], *, parents: bool = True) -> str:
    """Write a checkpoint and return its digest; the previous file stays until the new one is complete.

    Its folder is made where it is missing, with `parents`. Raises UserError where the disk is full or the folder cannot
    be written.
    """
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(facts, sort_keys=True)
    digest = digest_of(plain, text)
    with replacing(path, parents=parents) as temporary:
        try:
            save_file(plain, temporary, {"format": "pt", "facts": text, "digest": digest})
            _sort_header(temporary)
        except SafetensorError as error:
            number = next((int(part.split(")")[0]) for part in str(error).split("os error ")[1:]), 5)
            raise OSError(number, str(error)) from error
    return digest


def _sort_header(path: Path) -> None:
    """Put the keys of a file's header in order, so that equal weights are equal files; the library shuffles them."""
    with path.open("r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode().ljust(size)
        assert len(text) == size, "the header is compact JSON"
        file.seek(8)
        file.write(text)


def load(path: Path, *needed: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a checkpoint onto the CPU, with the facts of the names `needed`; packed weights become float32.

    Raises UserError where there is no such file, it is truncated, altered or not one of ours, or lacks one of the
    facts, as a model file does.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such model file; give a run folder in which training has saved one")
    with opened_tensors(path, "pt", "restore it or train again") as file:
        header = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if os.name == "nt":  # where a file that tensors are mapped from cannot be replaced
        tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    if not {"facts", "digest"} <= header.keys():
        raise UserError(f"{path}: not written by elman (its header has no digest); give a run folder")
    if digest_of(tensors, header["facts"]) != header["digest"]:
        raise UserError(f"{path}: altered since it was written (its digest does not match); restore it or train again")
    try:
        facts = msgspec.convert(parse_json(header["facts"]), dict[str, Any])
        msgspec.convert(facts, _Digests)
    except ValueError as error:
        raise UserError(f"{path}: its header is not as elman writes it ({error}); restore it or train again") from None
    if missing := [name for name in needed if facts.get(name) is None]:
        raise UserError(
            f"{path}: another kind of file than its name says (without {', '.join(missing)}); restore the file"
            " of the run"
        )
    return (_unpacked(path, tensors, facts[UNPACKED]) if UNPACKED in facts else tensors), facts


class _Digests(msgspec.Struct):
    """The facts of a model by which it is compared with other files."""

    data: str | None = None
    vocabulary: str | None = None
    unpacked: str | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name=UNPACKED)


def _unpacked(path: Path, tensors: Mapping[str, Tensor], digest: str) -> dict[str, Tensor]:
    """Weights in float32, of a file that keeps them in fewer bits; raises UserError where they are not those stated."""
    from elman.learning import packing

    try:
        whole = packing.unpack(tensors)
    except ValueError as error:
        raise UserError(f"{path}: its weights cannot be unpacked ({error}); restore the file") from None
    if (found := digest_of(whole)) != digest:
        raise UserError(
            f"{path}: its weights have the digest {found:.12} and should have {digest:.12}; restore the file"
        )
    return whole


def require_fit(path: Path, own: Mapping[str, Tensor], tensors: Mapping[str, Tensor], recipe: Path) -> None:
    """Raise UserError where tensors of a file have other names, shapes or types than `own`, or are not finite."""
    expected, found = ({name: _described(one) for name, one in some.items()} for some in (own, tensors))
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise UserError(
                f"{path}: does not fit {recipe}: {name} is {found.get(name, 'missing')}, the recipe needs"
                f" {expected.get(name, 'nothing of that name')}; restore the recipe of the run"
            )
        if not tensors[name].isfinite().all():
            raise UserError(f"{path}: {name} has values that are not finite; restore the file or train again")


def _described(tensor: Tensor) -> str:
    kind = "" if tensor.dtype == torch.float32 else f"{tensor.dtype} ".removeprefix("torch.")
    return f"{kind}{tuple(tensor.shape)}"


def recorded_recipe(path: Path, facts: Mapping[str, Any]) -> config.Recipe:
    """The recipe that a model or a checkpoint was trained with; raises UserError in a file that does not record it."""
    if not isinstance(recorded := facts.get("recipe"), dict):
        raise UserError(f"{path}: it does not say by which recipe it was trained; restore the file of the run")
    return config.parse_recipe({"title": "", **recorded}, str(path))


def digest_of(tensors: Mapping[str, Tensor], text: str = "") -> str:
    """SHA-256 over names, types, shapes and bytes, in the order of the names."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter once, tied ones under their first name, and every buffer, such as cluster assignments."""
    return {name: tensor.detach() for name, tensor in chain(model.named_parameters(), model.named_buffers())}


@torch.no_grad()
def load_model(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors into the parameters and buffers of the same names; shapes must agree."""
    own = model_tensors(model)
    assert own.keys() == tensors.keys(), sorted(own.keys() ^ tensors.keys())
    for name, tensor in own.items():
        tensor.copy_(tensors[name])


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with `prefix`, which is removed; `model/` gives the model of a checkpoint."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def require_same_inputs(path: Path, facts: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise UserError where a file belongs to a run with other data, or another vocabulary, than `own` names."""
    for name in ("data", "vocabulary"):
        if name in facts and name in own and facts[name] != own[name]:
            raise UserError(
                f"{path}: belongs to a run with another {name} (its digest is {facts[name]:.12}, this run's is"
                f" {own[name]:.12}); restore the file of the run"
            )


class BestModel:
    """The best model of a run so far, in `model.safetensors` of its folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / MODEL
        self._set_aside = folder / "model.before-stop.safetensors"

    def save(self, model: nn.Module, facts: Mapping[str, Any], *, provisional: bool = False) -> None:
        """Write the present weights with facts about them; a provisional model is undone by `restore`."""
        if provisional and self.path.exists():
            with replacing(self._set_aside) as temporary:  # copied, so that there is a best model at every moment
                shutil.copyfile(self.path, temporary)
        save(self.path, model_tensors(model), facts, parents=False)

    def restore(self) -> None:
        if self._set_aside.exists():
            self._set_aside.replace(self.path)

    def require(self, own: Mapping[str, Any]) -> None:
        """Raise UserError where the model is missing, damaged, or of a run with other facts than `own`."""
        _, facts = load(self.path)
        require_same_inputs(self.path, facts, own)

    @property
    def exists(self) -> bool:
        return self.path.exists() or self._set_aside.exists()
