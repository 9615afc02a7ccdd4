"""The device to compute on: its choice, its name, and its memory pages."""

import math
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from elman.errors import UserError


def choose_device(name: torch.device | str) -> torch.device:
    """The device of a name; raises UserError where it is unavailable. A device itself is returned as it is.

    `auto` is the first GPU of CUDA, or else the CPU. MPS, of Apple's processors, has to be named: a recurrent step is
    many small operations, each started on its own there, and there is no float64.

    A GPU of CUDA computes the products of its recurrent kernels in float32 from then on: torch's own default there is
    TF32, which has 10 bits of significand, though its other matrix products are float32.
    """
    device = name if isinstance(name, torch.device) else _named(name)
    if device.type == "cuda":
        torch.backends.cudnn.allow_tf32 = False
    return device


def _named(name: str) -> torch.device:
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


def visible_gpus() -> tuple[str, ...]:
    """The GPUs of CUDA as CUDA_VISIBLE_DEVICES names them, in torch's order; none where there are fewer than two."""
    count = torch.cuda.device_count()
    if count < 2:
        return ()
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return tuple(map(str, range(count))) if named is None else tuple(map(str.strip, named.split(",")))[:count]


def uses_cuda(name: str) -> bool:
    """Whether --device `name` is a GPU of CUDA here."""
    return torch.cuda.is_available() and (name == "auto" or name.partition(":")[0] == "cuda")


_COUNTS: dict[str, Callable[[], int]] = {
    "cpu": lambda: 1,
    "cuda": torch.cuda.device_count,
    "mps": lambda: int(torch.backends.mps.is_available()),
    "xpu": torch.xpu.device_count,
}
"""How many devices of each type torch can compute on."""


def widest(device: torch.device) -> torch.dtype:
    """The type in which sums are formed on a device: float64, except on MPS, which has none."""
    return torch.float32 if device.type == "mps" else torch.float64


def random_states() -> dict[str, torch.Tensor]:
    """The states of torch's generators on this machine, by the type of device."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    if torch.backends.mps.is_available():
        states["mps"] = torch.mps.get_rng_state()
    return states


def restore_random_states(states: Mapping[str, torch.Tensor]) -> None:
    """Continue the draws of `random_states`, as far as the devices are there."""
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])
    if "mps" in states and torch.backends.mps.is_available():
        torch.mps.set_rng_state(states["mps"])


def usable_threads(wanted: int) -> int:
    """As many threads as are asked for, at most one for each core; a smaller number is reported on standard error."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if wanted <= cores:
        return wanted
    sys.stderr.write(f"elman: --threads {wanted}: the machine has {cores} cores, so {cores} threads are used\n")
    return cores


def faster_threads(rounds: int = 3) -> int:
    """One thread, or as many as torch uses: whichever is faster now at the products of a small recurrent network.

    Where other processes are busy on the cores, several threads wait for each other and may take a hundred times as
    long as one. The least time of some rounds counts; several threads must be a tenth faster. Their number is left as
    it was.
    """
    several = torch.get_num_threads()
    if several == 1:
        return 1
    weight, state = torch.rand(1024, 256), torch.rand(32, 256)
    times = dict.fromkeys((1, several), math.inf)
    for _ in range(rounds):
        for threads in times:
            torch.set_num_threads(threads)
            started = time.perf_counter()
            for _ in range(50):
                torch.nn.functional.linear(state, weight).tanh()
            times[threads] = min(times[threads], time.perf_counter() - started)
    torch.set_num_threads(several)
    return several if times[several] < 0.9 * times[1] else 1


def processor_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
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
