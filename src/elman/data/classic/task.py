"""A classic task: sequences of any span generated on demand, and the error at which the task counts as learnt."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from elman.data.windows import Batch


class Sample(NamedTuple):
    """Sequences side by side: symbols [T, B] or values [T, B, P]; the mask of the batch gives the targets of training.

    `allowed` are the correct symbols, bool [T, B, V]; positions that allow none are not judged. None for values.
    """

    batch: Batch
    allowed: Tensor | None = None


Draw = Callable[[np.random.Generator, int, int], Sample]
"""(random numbers, columns B, span) -> sequences."""


class ClassicTask(NamedTuple):
    """One task, from the publication `source`.

    Attributes:
        sentence: what is to be learnt, and what the span is.
        inputs: V for symbols, or values per step, of which `outputs` are to be predicted.
        chance: the error of the best guess without memory, in words.
        kind: symbols, or real values with a squared error.
        solved: the error below which it counts as learnt: mean square, or share of judged positions that are wrong.
        span: the shortest span to try by default, between `least` and `most`.
    """

    name: str
    sentence: str
    source: str
    inputs: int
    draw: Draw
    chance: str
    kind: Literal["symbols", "values"] = "symbols"
    outputs: int = 1
    solved: float = 0.01
    span: int = 8
    least: int = 1
    most: int = 100_000


def determined(inputs: np.ndarray, targets: np.ndarray, judged: np.ndarray, symbols: int) -> Sample:
    """Symbols [T, B] that are trained and judged where `judged`, each with one correct answer."""
    allowed = np.eye(symbols, dtype=bool)[targets] & judged[..., None]
    mask = torch.from_numpy(judged)
    return Sample(Batch(torch.from_numpy(inputs), torch.from_numpy(targets), mask), torch.from_numpy(allowed))
