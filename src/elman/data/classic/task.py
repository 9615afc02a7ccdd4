"""A classic task: sequences of any span generated on demand, and the error at which the task counts as learnt."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from elman.data.batches import Batch


class Sample(NamedTuple):
    """Sequences side by side: symbols [T, B], values or bits [T, B, P]; the mask gives the targets of training.

    `allowed` are the correct symbols, bool [T, B, V]; positions that allow none are not judged. None for values and
    bits.
    """

    batch: Batch
    allowed: Tensor | None = None


Draw = Callable[..., Sample]  # (random numbers, columns B, span) -> sequences


class ClassicTask(NamedTuple):
    """One task, from the publication `source`.

    Attributes:
        sentence: what is to be learnt, and what the span is.
        inputs: V for symbols, or values or bits per step; of these `outputs` are to be predicted.
        chance: the error of the best guess without memory, in words.
        kind: symbols, real values with a squared error, or bits.
        solved: the error below which it counts as learnt: mean square, or share of judged positions or bits that are
            wrong.
        span: the shortest span to try by default, between `least` and `most`.
        full: draws the sequences on which the error is measured where `draw` draws shorter ones too; None: `draw`.
    """

    name: str
    sentence: str
    source: str
    inputs: int
    chance: str
    draw: Draw
    kind: Literal["symbols", "values", "bits"] = "symbols"
    outputs: int = 1
    solved: float = 0.01
    span: int = 8
    least: int = 1
    most: int = 100_000
    full: Draw | None = None

    def measured(self, rng: np.random.Generator, columns: int, span: int) -> Sample:
        """Sequences on which the error is measured."""
        return (self.full or self.draw)(rng, columns, span)


DEFINED: dict[str, ClassicTask] = {}


def task(name: str, sentence: str, source: str, inputs: int, chance: str, **more: Any) -> Callable[[Draw], Draw]:
    """Define a task whose sequences the decorated function draws."""

    def define(draw: Draw) -> Draw:
        DEFINED[name] = ClassicTask(name, sentence, source, inputs, chance, draw, **more)
        return draw

    return define


EVERYWHERE = slice(None)


def determined(
    inputs: np.ndarray, targets: np.ndarray, symbols: int, judged: slice = EVERYWHERE, trained: slice | None = None
) -> Sample:
    """Symbols [T, B], each with one correct answer, judged at some steps; trained there, or at the steps `trained`."""
    of_judged, mask = np.zeros(inputs.shape, dtype=bool), torch.zeros(inputs.shape, dtype=torch.bool)
    of_judged[judged], mask[judged if trained is None else trained] = True, True
    allowed = np.eye(symbols, dtype=bool)[targets] & of_judged[..., None]
    return Sample(Batch(torch.from_numpy(inputs), torch.from_numpy(targets), mask), torch.from_numpy(allowed))
