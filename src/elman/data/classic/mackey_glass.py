"""The Mackey-Glass series (Mackey & Glass 1977): dx/dt = 0.2 x(t - tau) / (1 + x(t - tau)^10) - 0.1 x(t)."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from elman.data.batches import Batch
from elman.data.classic.task import Sample, task
from elman.files import write_atomic

WINDOW, LISTENED, LENGTH = 200, 100, 20_000
SPACING = 6  # units of time between the values of the corpus, the distance at which the series is usually predicted


def mackey_glass(steps: int, *, tau: int = 17, seed: int = 0, per_step: int = 10, settle: int = 1000) -> np.ndarray:
    """`steps` values one unit of time apart, float64, from a chaotic attractor at delay tau = 17.

    Runge-Kutta of the fourth order with `per_step` steps per unit; the delayed value at half a step is interpolated by
    the cubic through its four neighbours, which keeps the order. The past is a constant between 1.1 and 1.3, drawn by
    the seed; the first value comes after `settle` units of time.
    """
    h, lag = 1.0 / per_step, tau * per_step
    x = [1.2 + 0.1 * float(np.random.default_rng(seed).uniform(-1, 1))] * (lag + 1)

    def production(delayed: float) -> float:
        return 0.2 * delayed / (1.0 + delayed**10)

    for now in range(lag, lag + (settle + steps) * per_step):
        at = now - lag
        a, b = x[at], x[at + 1]
        before, after = x[at - 1 if at else 0], x[at + 2] if at + 2 <= now else b
        p0, p1, p2 = production(a), production((9.0 * (a + b) - before - after) / 16.0), production(b)
        y = x[now]
        k1 = p0 - 0.1 * y
        k2 = p1 - 0.1 * (y + 0.5 * h * k1)
        k3 = p1 - 0.1 * (y + 0.5 * h * k2)
        k4 = p2 - 0.1 * (y + h * k3)
        x.append(y + h * (k1 + 2.0 * k2 + 2.0 * k3 + k4) / 6.0)
    return np.array(x[lag + settle * per_step :: per_step][:steps])


def write_series(path: Path) -> None:
    """Write `LENGTH` values, `SPACING` units of time apart, as a CSV file with the column x; every digit is kept."""
    values = mackey_glass(SPACING * LENGTH)[::SPACING].tolist()
    write_atomic(path, "".join(f"{line}\n" for line in ("x", *map(repr, values))))


@lru_cache(maxsize=1)
def _series() -> np.ndarray:
    return mackey_glass(LENGTH).astype(np.float32) - 1.0


@task(
    "mackey-glass",
    "a chaotic series (tau = 17), predicted by the span",
    "Mackey & Glass 1977; Jaeger & Haas 2004",
    inputs=1,
    chance="0.05, the variance",
    kind="values",
    solved=0.0005,
    span=1,
    most=LENGTH - WINDOW - 1,
)
def foresee(rng: np.random.Generator, columns: int, span: int) -> Sample:
    """Windows of the series less 1; the value `span` steps ahead is due at every step after the first 100."""
    series = _series()
    starts = rng.integers(0, LENGTH - WINDOW - span, columns)
    places = starts + np.arange(WINDOW)[:, None]
    mask = torch.ones(WINDOW, columns, dtype=torch.bool)
    mask[:LISTENED] = False
    inputs, targets = (torch.from_numpy(series[at][..., None]) for at in (places, places + span))
    return Sample(Batch(inputs, targets, mask))
