"""Tensors and facts in one file: safetensors, with JSON in its header. No pickle: loading a model runs no code.

The file is written whole or not at all, and a digest over everything in it is checked when it is read.
"""

import hashlib
import json
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from elman.errors import UserError
from elman.files import replacing
from elman.learning.averaging import Average
from elman.learning.optimisers import Optimiser
from elman.network.model import LanguageModel
from elman.network.state import State, leaves, rebuild


# FOLDED learning/snapshot.py: A trainer's whole state as named tensors and facts, and back: what makes a resumed run the same run.
def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter once, tied ones under their first name, and every buffer: what training decided once."""
    return {name: tensor.detach() for name, tensor in chain(model.named_parameters(), model.named_buffers())}


@torch.no_grad()
def load_model(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors into the parameters and buffers of the same names; shapes must agree."""
    own = model_tensors(model)
    assert own.keys() == tensors.keys(), sorted(own.keys() ^ tensors.keys())
    for name, tensor in own.items():
        tensor.copy_(tensors[name])


def gather(
    model: nn.Module,
    optimiser: Optimiser,
    average: Average | None,
    state: State | None,
    constraint: Mapping[str, Tensor] | None = None,
) -> dict[str, Tensor]:
    """All tensors of a training run, prefixed by what they belong to."""
    tensors = {f"model/{name}": tensor for name, tensor in model_tensors(model).items()}
    for name, values in optimiser.memory.items():
        tensors |= {f"optimiser/{name}/{index}": value for index, value in enumerate(values)}
    if average is not None:
        tensors |= {f"average/{index}": value for index, value in enumerate(average.values)}
    if state is not None:
        tensors |= {f"state/{index}": leaf for index, leaf in enumerate(leaves(state))}
    tensors |= {f"constraint/{name}": tensor for name, tensor in (constraint or {}).items()}
    tensors["random/cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random/cuda"] = torch.cuda.get_rng_state()
    return tensors


def restore_optimiser(optimiser: Optimiser, tensors: Mapping[str, Tensor]) -> None:
    """Momenta, squared averages and step counts; rates come from the recipe."""
    for name, values in optimiser.memory.items():
        saved = _under(f"optimiser/{name}/", tensors)
        for index, value in enumerate(values):
            value.copy_(saved[str(index)])


def restore_average(average: Average, tensors: Mapping[str, Tensor], count: int) -> None:
    """The averaged weights and how many steps they hold."""
    saved = _under("average/", tensors)
    average.count = count
    average.values = [saved[str(index)].to(value.device) for index, value in enumerate(average.values)]


def restore_state(beginning: State, tensors: Mapping[str, Tensor]) -> State | None:
    """The recurrent state, or None where the checkpoint has none."""
    saved = _under("state/", tensors)
    if not saved:
        return None
    device = next(leaves(beginning)).device
    return rebuild(beginning, iter(saved[str(index)].to(device) for index in range(len(saved))))


def restore_random(tensors: Mapping[str, Tensor]) -> None:
    """The random states of the CPU and, where both sides have one, of the GPU."""
    torch.set_rng_state(tensors["random/cpu"])
    if "random/cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random/cuda"])


def of_model(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The model's part of a snapshot."""
    return _under("model/", tensors)


def of_constraint(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What a constraint remembers."""
    return _under("constraint/", tensors)


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


# FOLDED learning/best.py: The best model of a run so far, in model.safetensors: averaged weights where weights are averaged.
class BestModel:
    """Writes and reads `model.safetensors` of a run folder.

    Args:
        folder: the run folder.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "model.safetensors"
        self._set_aside = folder / "model.before-stop.safetensors"

    def keep(self, model: LanguageModel, average: Average | None, facts: Mapping[str, Any]) -> None:
        """Write the weights, or their average where there is one, with facts about them."""
        if average is None:
            save(self.path, model_tensors(model), facts)
            return
        with average.applied():
            save(self.path, model_tensors(model), {**facts, "averaged": True})

    def keep_for_now(self, model: LanguageModel, average: Average | None, facts: Mapping[str, Any]) -> None:
        """Write a model from the middle of an epoch, so that `forget_for_now` brings back the one before it."""
        if self.path.exists():
            self.path.replace(self._set_aside)
        self.keep(model, average, facts)

    def forget_for_now(self) -> None:
        """What a resumed run must not know of: undo `keep_for_now`."""
        if self._set_aside.exists():
            self._set_aside.replace(self.path)

    def load_into(self, model: LanguageModel) -> None:
        """Give a model the best weights."""
        tensors, _ = load(self.path)
        load_model(model, tensors)


# TARGET
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
