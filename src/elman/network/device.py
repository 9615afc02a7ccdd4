"""The device to compute on: its choice, its name, and its memory pages."""

import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from elman.errors import UserError


def choose_device(name: str) -> torch.device:
    """The device of a name; `auto` is the first GPU, or else the CPU. Raises UserError where it is unavailable."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in _COUNTS:
        raise UserError(f"--device {name}: unknown; write auto, cpu, cuda, cuda:0, mps or xpu")
    if (count := _COUNTS[device.type]()) == 0:
        what = "GPU" if device.type == "cuda" else f"device of type {device.type}"
        raise UserError(f"--device {name}: torch finds no {what}; write --device cpu")
    if (device.index or 0) >= count:
        raise UserError(f"--device {name}: torch finds {count}, numbered from 0; write --device {device.type}:0")
    return device


_COUNTS: dict[str, Callable[[], int]] = {
    "cpu": lambda: 1,
    "cuda": torch.cuda.device_count,
    "mps": lambda: int(torch.backends.mps.is_available()),
    "xpu": torch.xpu.device_count,
}
"""How many devices of each type torch can compute on."""


def usable_threads(wanted: int) -> int:
    """As many threads as are asked for, at most one for each core; a smaller number is reported on standard error."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if wanted <= cores:
        return wanted
    sys.stderr.write(f"elman: --threads {wanted}: the machine has {cores} cores, so {cores} threads are used\n")
    return cores


def processor_name(device: torch.device) -> str:
    """The name of the processor or GPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def use_large_pages() -> None:
    """Set the environment variable that torch reads before its first large tensor, unless it is set.

    A training step frees and allocates the same large blocks repeatedly. The C library returns blocks of 32 MB and
    more to the system on every release, so that each consists of fresh pages again, at about a microsecond per 4 kB.
    Pages of 2 MB cost a tenth: a training step's softmax over 33 000 words takes 0.8 of the time, an LSTM of 80 x 400
    0.85. (Keeping the blocks with mallopt is as fast, but the heap fragments and grows.) A program calls this function
    at its start; it has an effect on Linux only.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
