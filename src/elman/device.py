"""Which device to compute on."""

import platform
from pathlib import Path

import torch

from elman.errors import UserError


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
