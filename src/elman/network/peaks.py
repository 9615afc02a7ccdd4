"""How fast a machine multiplies matrices, by library and precision."""

import time
from collections.abc import Callable
from typing import NamedTuple

import torch

from elman.network import matmul, precision
from elman.network.precision import Precision

ROWS, INPUTS, OUTPUTS = 640, 1024, 2048
"""The product that is timed: that of the inputs of a layer with a window of 20 x 32."""

TURNS = 5


class Peak(NamedTuple):
    """The best rate of a product, GFLOP/s, of a library in a precision."""

    library: str
    precision: Precision
    gflops: float


def measure(device: torch.device) -> list[Peak]:
    """Time products of both precisions in turns, in a fraction of a second; the best of each counts.

    On a CPU those of `torch.mm`, and of the library behind `network/matmul.py`, by the processor time of a thread, so
    that other work of the machine matters little; on other devices one library is behind both.
    """
    x, w = (torch.randn(rows, INPUTS, device=device) for rows in (ROWS, OUTPUTS))
    reduced = x.bfloat16(), w.bfloat16().t()
    candidates: dict[tuple[str, Precision], Callable[[], object]] = {
        ("torch.mm", "float32"): lambda: torch.mm(x, w.t()),
        ("torch.mm", "bf16"): lambda: torch.mm(*reduced),
    }
    if matmul.uses_onednn(x):
        packed = matmul.pack(w, ROWS, matmul.PACKING_USES)
        candidates["oneDNN", "float32"] = lambda: matmul.multiply(x, packed)
    if matmul.uses_onednn(reduced[0]):
        with precision.products_in("bf16"):
            packed_reduced = matmul.pack(w, ROWS, matmul.PACKING_USES)
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
