"""Which device to compute on."""

import os
import platform
from pathlib import Path

import torch

from elman.errors import UserError


# FOLDED kernels/allocator.py: Large pages for large tensors.
#
# A training step frees and takes the same large blocks again and again. The C library gives blocks of 32 MB
# and more back to the system at every release, so that each is made of fresh pages again, at about a
# microsecond for 4 kB. With pages of 2 MB that costs a tenth: a training step's softmax over 33 000 words
# takes 0.8 of the time, an LSTM of 80 x 400 0.85. (Telling the C library to keep the blocks, by mallopt, is
# as fast, but its heap fragments and grows.)
def use_large_pages() -> None:
    """Set the variable torch reads when it makes its first large tensor, unless it is set.

    A program calls it once, at its start. Elsewhere than on Linux it has no effect.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


# TARGET
def choose_device(name: str) -> torch.device:
    """`auto` takes the first GPU there is, else the CPU.

    Raises:
        UserError: no such device, or none of that kind here.

    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"--device {name}: unknown; write auto, cpu, cuda or cuda:0") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"--device {name}: this torch sees no GPU; write --device cpu")
    return device


def processor_name(device: torch.device) -> str:
    """The name of the processor or GPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
