"""Learning-rate schedules as pure functions of the position in training: there is nothing to save or restore."""

import math
from collections.abc import Sequence
from typing import TypeAlias, assert_never

from elman import config
from elman.objective import perplexity

Schedule: TypeAlias = config.Constant | config.Decay | config.Plateau | config.Steps | config.Cosine

LARGEST = 700.0
"""The logarithm of a divisor that float64 still holds."""


def rate(schedule: Schedule, lr: float, epoch: float, epochs: int, history: Sequence[float]) -> float:
    """The learning rate after `epoch` of `epochs` epochs, where `lr` is that of the recipe.

    `epoch` has a fraction (0.0 at the first step); `history` is the validation NLL (nats per token) after each epoch
    done.

    Example:
        >>> halving = config.Decay(after=1, factor=2.0)
        >>> [rate(halving, 20.0, epoch, 5, []) for epoch in (0, 0.9, 1, 2)]
        [20.0, 20.0, 10.0, 5.0]
    """
    match schedule:
        case config.Constant():
            return lr
        case config.Decay(after=after, factor=factor):
            return _divided(lr, factor, max(0, math.floor(epoch) - after + 1))
        case config.Steps(epochs=at, factor=factor):
            return _divided(lr, factor, sum(epoch >= one for one in at))
        case config.Plateau(factor=factor, min_lr=min_lr):
            return max(min_lr, _divided(lr, factor, _plateaus(schedule, history)))
        case config.Cosine(warm_up=warm_up, floor=floor):
            if epoch < warm_up:
                return lr * epoch / warm_up
            done = min(1.0, (epoch - warm_up) / max(1e-9, epochs - warm_up))
            return lr * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * done)))
        case _:
            assert_never(schedule)


def _divided(lr: float, factor: float, times: int) -> float:
    """The rate divided by `factor` so many times; 0 where the divisor is beyond the range of float64."""
    return lr / factor**times if times * math.log(factor) < LARGEST else 0.0


def _plateaus(schedule: config.Plateau, history: Sequence[float]) -> int:
    compared, waited, plateaus = math.inf, 0, 0
    for epoch, nll in enumerate(history, start=1):
        value = perplexity(nll)
        waited = 0 if value < compared - schedule.threshold or epoch < schedule.after else waited + 1
        compared = min(compared, value) if schedule.against == "best" else value
        if waited >= schedule.patience:
            plateaus, waited = plateaus + 1, 0
    return plateaus
