"""Estimate the cost of a recipe (parameters, memory, minutes) from a few timed steps, without writing anything."""

import itertools
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

from elman import config
from elman.jobs import Advance
from elman.learning import prediction
from elman.learning.progress import phases_of
from elman.network.cores.layer import Layer
from elman.tasks.experiment import build
from elman.tasks.plan import Plan

STEPS = 4  # training steps that are timed at least, and that a piece of the timing has
GPU_STEP, GPU_RATE = 55e-6, 100e12
"""Seconds of a time step of a layer, and operations per second of products, on an H100 with bf16 and nothing beside it.

A step of AWD-LSTM (70 steps of three layers) takes 13.6 ms there. Other networks may take half of this, or twice.
"""

PIECES = 8
"""Of a longer timing, at most. The fastest one counts: other processes make a machine slower, never faster."""


def estimate(
    recipe: config.Recipe,
    data: str | Path | None,
    device: torch.device,
    advance: Advance = None,
    *,
    least_seconds: float = 0.0,
) -> dict[str, Any]:
    """Time a few training steps after a warm-up step, for `least_seconds` at least.

    Of equal windows the median counts, of others the time per token, and of several pieces the fastest. Returns
    parameters, peak_mb (of the process, or of the GPU's allocator), tokens_per_s, minutes_per_epoch, epochs, minutes;
    minutes of the main phase include the branches of `predict_loss`. On a CPU also `gpu_minutes`, what a GPU would take
    by `GPU_STEP` and `GPU_RATE`. Raises UserError where there is no data, or the recipe does not fit it.
    """
    _, task, model, update = build(Plan.trial(recipe, data, device))
    training = recipe.training
    windows = task.windows(training.window.max_extra)
    spans, parts = task.steps(windows.spans(0))
    seconds, positions = list[float](), list[int]()
    for index in itertools.count():
        started = time.perf_counter()
        batch = windows.batch(spans[index % len(spans)]).to(device)
        loss = update(batch, training.optimiser.lr)
        loss.nll_sum.item()  # waits for the device
        if index:
            seconds.append(time.perf_counter() - started)
            positions.append(int(loss.num_counted))
        if advance is not None:
            advance(min(index, STEPS) + 1, STEPS + 1)
        if index >= STEPS and sum(seconds) >= least_seconds:
            break
    length = max(STEPS, -(-len(seconds) // PIECES))
    pieces = [slice(start, start + length) for start in range(0, len(seconds) - length + 1, length)]
    if len(spans) == 1:
        per_step = min(statistics.median(seconds[piece]) for piece in pieces)
    else:
        per_token = min(sum(seconds[piece]) / max(1, sum(positions[piece])) for piece in pieces)
        per_step = per_token * max(1, sum(positions)) / len(positions)
    main, *later = (phase.epochs for phase in phases_of(training))
    branches = prediction.COST if training.predict_loss else 0.0
    per_epoch, epochs = per_step * parts / 60, main + sum(later)
    tokens = statistics.fmean(positions)
    layers = sum(isinstance(module, Layer) for module in model.modules())
    parameters = sum(parameter.numel() for parameter in model.parameters())
    on_gpu = gpu_seconds(layers * tokens / training.batch_size, 6 * parameters * tokens) * parts / 60
    cost = {} if device.type == "cuda" else {"gpu_minutes": on_gpu * (epochs + branches * main)}
    return {
        "title": recipe.title,
        "parameters": parameters,
        "peak_mb": peak_mb(device),
        "tokens_per_s": tokens / per_step,
        "minutes_per_epoch": per_epoch * (1 + branches),
        "epochs": epochs,
        "minutes": per_epoch * (epochs + branches * main),
        **cost,
    }


def gpu_seconds(steps: float, operations: float) -> float:
    """Seconds of a GPU for `steps` time steps of layers, and for products of `operations` floating-point operations.

    Example: a training step of AWD-LSTM, 24.2 million weights and 70 steps of 20 columns.
        >>> round(1e3 * gpu_seconds(3 * 70, 6 * 24.2e6 * 70 * 20), 1)
        13.6
    """
    return GPU_STEP * steps + operations / GPU_RATE


def peak_mb(device: torch.device) -> float:
    """Peak memory in MB: of the GPU's allocator, else of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    if sys.platform == "win32":
        return _peak_on_windows() / 1e6
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


def _peak_on_windows() -> int:
    """The largest working set of this process in bytes, as GetProcessMemoryInfo of Windows gives it."""
    import ctypes
    from ctypes import wintypes

    class Counters(ctypes.Structure):  # PROCESS_MEMORY_COUNTERS
        _fields_ = (
            ("size", wintypes.DWORD),
            ("page_faults", wintypes.DWORD),
            ("peak", ctypes.c_size_t),
            *((f"other_{index}", ctypes.c_size_t) for index in range(7)),
        )

    counters = Counters(size=ctypes.sizeof(Counters))
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined,unused-ignore]
    kernel.GetCurrentProcess.restype = wintypes.HANDLE
    found = kernel.K32GetProcessMemoryInfo
    found.argtypes = wintypes.HANDLE, ctypes.POINTER(Counters), wintypes.DWORD
    return int(counters.peak) if found(kernel.GetCurrentProcess(), ctypes.byref(counters), counters.size) else 0
