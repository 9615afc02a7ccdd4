"""A classic task: batches of sequences made on the spot, of any span, and when it counts as learnt."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from elman.data.windows import Batch


class Sample(NamedTuple):
    """Sequences side by side.

    Attributes:
        batch: inputs and targets, symbols [T, B] or values [T, B, P]; the mask says what is learnt.
        allowed: which symbols would be right, bool [T, B, V]; positions that allow none are not judged. None: values.

    """

    batch: Batch
    allowed: Tensor | None = None


Draw = Callable[[np.random.Generator, int, int], Sample]
"""(random numbers, columns B, span) -> sequences."""


class ClassicTask(NamedTuple):
    """One task.

    Attributes:
        name: what it is called.
        sentence: what is to be learnt, and what the span is.
        source: where it comes from.
        kind: symbols, or real values with a squared error.
        inputs: V symbols, or P values a step.
        outputs: values a step; V for symbols.
        draw: makes sequences.
        solved: the error below which it counts as learnt: mean square, or share of judged positions that are wrong.
        chance: the error of the best guess without memory, in words.
        span: the shortest span that is tried, unless another is asked for.
        least, most: the spans that there are.

    """

    name: str
    sentence: str
    source: str
    kind: Literal["symbols", "values"]
    inputs: int
    outputs: int
    draw: Draw
    solved: float
    chance: str
    span: int
    least: int = 1
    most: int = 100_000


def determined(inputs: np.ndarray, targets: np.ndarray, judged: np.ndarray, symbols: int) -> Sample:
    """Symbols [T, B] that are learnt and judged where `judged`, each with one right answer."""
    allowed = np.eye(symbols, dtype=bool)[targets] & judged[..., None]
    mask = torch.from_numpy(judged)
    return Sample(Batch(torch.from_numpy(inputs), torch.from_numpy(targets), mask), torch.from_numpy(allowed))
