"""Which precision `auto` stands for on a machine: measured once, and remembered in the cache of elman.

Runs of one machine must agree, or the arms of a comparison would differ in precision where some were begun beside other
work. The record of a machine belongs to its processor or GPU, the version of torch, the number of threads, and the
variable that switches instructions of oneDNN off.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import filelock
import msgspec
import torch

from elman.errors import UserError
from elman.files import cache_folder, json_text, sha256_lines, write_atomic
from elman.formats import read_json
from elman.network import peaks
from elman.network.device import processor_name
from elman.network.precision import Precision

WORTH = 1.3
"""bf16 products that are not so many times as fast as float32 are not worth their rounding."""

Choice = Literal["float32", "bf16"]


class Remembered(msgspec.Struct, frozen=True):
    """What was measured on a machine: how many times as fast products are in bf16 as in float32."""

    machine: dict[str, str]
    gain: float


def preferred(gain: float) -> Choice:
    """The precision bf16 where its products are `WORTH` times as fast or more."""
    return "bf16" if gain >= WORTH else "float32"


def automatic(device: torch.device) -> Choice:
    """The precision that is preferred on this machine: as remembered, else measured and remembered."""
    path = _path(device)
    with _alone(path):
        if (found := _read(path)) is None:
            found = remember(device, peaks.gain(peaks.measure(device)))
    return preferred(found.gain)


def remember(device: torch.device, gain: float) -> Remembered:
    """Record what was measured, in place of what was before; where the cache cannot be written nothing is recorded."""
    found = Remembered(_machine(device), gain)
    with contextlib.suppress(UserError):
        write_atomic(_path(device), json_text(msgspec.to_builtins(found), indent=1) + "\n")
    return found


def resolve(wanted: Literal["auto"] | Precision, device: torch.device) -> Precision:
    """The precision that is meant by a name."""
    return automatic(device) if wanted == "auto" else wanted


def _machine(device: torch.device) -> dict[str, str]:
    return {
        "processor": processor_name(device),
        "device": device.type,
        "threads": str(torch.get_num_threads()) if device.type == "cpu" else "",
        "torch": str(torch.__version__),
        "ONEDNN_MAX_CPU_ISA": os.environ.get("ONEDNN_MAX_CPU_ISA", ""),
    }


def _path(device: torch.device) -> Path:
    lines = (f"{key}={value}" for key, value in _machine(device).items())
    return cache_folder() / "machines" / f"{sha256_lines(*lines)[:16]}.json"


def _read(path: Path) -> Remembered | None:
    """What is remembered; a damaged file is measured again."""
    try:
        return msgspec.convert(read_json(path), Remembered)
    except (UserError, msgspec.ValidationError):
        return None


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Within the block no other process measures, where the cache can be locked."""
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError, NotImplementedError):
            path.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(filelock.FileLock(path.with_suffix(".lock")))
        yield
