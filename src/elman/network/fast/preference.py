"""How fast a machine multiplies matrices, and so which precision `auto` stands for.

It is measured once and remembered in the cache of elman: runs of one machine must agree, or the arms of a comparison
would differ in precision where some were begun while other work ran. The record of a machine belongs to its processor
or GPU, the version of torch, the number of threads, and the variable that switches instructions of oneDNN off.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import filelock
import msgspec
import torch

from elman.errors import UserError
from elman.files import cache_folder, json_text, sha256_lines, write_atomic
from elman.formats import read_json
from elman.network.device import processor_name
from elman.network.fast import matmul, policy, precision
from elman.network.fast.precision import Precision

ROWS, INPUTS, OUTPUTS = 640, 1024, 2048
"""The product that is timed: the inputs of a layer times its weights, over a window of 20 x 32."""

TURNS = 5


class Peak(NamedTuple):
    """The best rate of a product, GFLOP/s, of a library in a precision."""

    library: str
    precision: Precision
    gflops: float


def measure(device: torch.device) -> list[Peak]:
    """Time products of both precisions in turns, in a fraction of a second; the best of each counts.

    On a CPU they are products of `torch.mm`, and of the library behind `fast/matmul.py`, by the processor time of a
    thread, so that other work of the machine matters little; on other devices one library is behind both.
    """
    x, w = (torch.randn(rows, INPUTS, device=device) for rows in (ROWS, OUTPUTS))
    reduced = x.bfloat16(), w.bfloat16().t()
    candidates: dict[tuple[str, Precision], Callable[[], object]] = {
        ("torch.mm", "float32"): lambda: torch.mm(x, w.t()),
        ("torch.mm", "bf16"): lambda: torch.mm(*reduced),
    }
    if policy.uses_onednn(x):
        packed = matmul.pack(w, ROWS, policy.PACKING_USES)
        candidates["oneDNN", "float32"] = lambda: matmul.multiply(x, packed)
    if policy.uses_onednn(reduced[0]):
        with precision.products_in("bf16"):
            packed_reduced = matmul.pack(w, ROWS, policy.PACKING_USES)
        candidates["oneDNN", "bf16"] = lambda: matmul.multiply(x, packed_reduced)
    best = dict.fromkeys(candidates, float("inf"))
    for turn in range(TURNS):
        for name, product in candidates.items():
            if turn > 1 and best[name] > 10 * min(best.values()):
                continue  # bf16 in software: once is enough
            best[name] = min(best[name], _seconds(product, device))
    return [Peak(*name, 2e-9 * ROWS * INPUTS * OUTPUTS / seconds) for name, seconds in best.items()]


def _seconds(product: Callable[[], object], device: torch.device) -> float:
    if device.type == "cpu":
        started = time.process_time()
        product()
        return (time.process_time() - started) / torch.get_num_threads()
    _wait(device)
    started = time.perf_counter()
    product()
    _wait(device)
    return time.perf_counter() - started


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def gain(peaks: list[Peak]) -> float:
    """How many times as fast the fastest library is in bf16 as the fastest in float32."""
    best = {kind: max(peak.gflops for peak in peaks if peak.precision == kind) for kind in ("float32", "bf16")}
    return best["bf16"] / best["float32"]


WORTH = 1.3
"""bf16 products that do not gain this factor over float32 are not worth their rounding."""

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
            found = remember(device, gain(measure(device)))
    return preferred(found.gain)


def remember(device: torch.device, gain: float) -> Remembered:
    """Record what was measured, in place of what was before; where the cache cannot be written nothing is recorded."""
    found = Remembered(_machine(device), gain)
    with contextlib.suppress(UserError):
        write_atomic(_path(device), json_text(msgspec.to_builtins(found), indent=1) + "\n")
    return found


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
