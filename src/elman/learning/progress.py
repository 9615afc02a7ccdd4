"""Where a training is: its phases, its counters and histories, the windows that come next, and the learning rate."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias, assert_never

import msgspec

from elman import config
from elman.data.batches import Batch
from elman.data.windows import Span, Windows
from elman.errors import UserError, counted
from elman.objective import perplexity

Schedule: TypeAlias = config.Constant | config.Decay | config.Plateau | config.Steps | config.Cosine

Changes: TypeAlias = dict[str, tuple[Any, Any]]
"""What a recipe changes in the one that a run began with: the value before and after, by key path."""

LARGEST = 700.0
"""The logarithm of a divisor that float64 still holds."""

PHASE = 1_000_000
"""The number of the first epoch of the second phase, whose windows are drawn afresh."""

FEW = 10
"""Steps below which a training that the time ended was hardly one."""


def phases_of(training: config.Training) -> list[config.Training]:
    """The phases of a recipe: the main one, and fine-tuning from its best model (NT-ASGD) where it asks for that."""
    if (fine := training.fine_tune) is None:
        return [training]
    window = training.window
    if fine.max_extra is not None:
        window = msgspec.structs.replace(window, max_extra=fine.max_extra)
    fine_tuning = msgspec.structs.replace(
        training,
        optimiser=config.SGD(lr=fine.lr),
        schedule=config.Constant(),
        averaging=config.Immediate(compensated=None if training.averaging is None else training.averaging.compensated),
        epochs=fine.epochs,
        window=window,
        patience=None,
    )
    return [training, fine_tuning]


def averages_at_once(phase: config.Training) -> bool:
    """Whether the weights are averaged from the first step of a phase on."""
    return not isinstance(phase.averaging, config.NonMonotone | None)


class Progress(msgspec.Struct):
    """Counters and histories, which a checkpoint holds with its tensors.

    Attributes:
        phase: 0 is the main phase, 1 fine-tuning.
        epoch, window, step: epochs of this phase, windows of this epoch, and optimiser steps of all phases done.
        checks: validation NLLs of this phase, oldest first.
        by_epoch: the validation NLL after each epoch of this phase, for schedules.
        best: the best validation NLL of all phases, with the step and epoch it belongs to.
        waited, average_count: validations since the best, and steps in the average.
        seconds: time spent training, resumptions included.
        nll_sum, count, penalty_sum, windows_logged: since the last line of metrics.
        lines: lines of metrics written.
        checked: the step of the last validation; None before it.
        branches: validation NLLs of the branches from which the end is predicted (`prediction.py`); None: no number.
    """

    phase: int = 0
    epoch: int = 0
    window: int = 0
    step: int = 0
    checks: list[float] = []
    by_epoch: list[float] = []
    best: float | None = None
    best_step: int = 0
    best_epoch: float = 0.0
    waited: int = 0
    averaging: bool = False
    average_count: int = 0
    finished: bool = False
    seconds: float = 0.0
    nll_sum: float = 0.0
    count: int = 0
    penalty_sum: float = 0.0
    windows_logged: int = 0
    lines: int = 0
    checked: int | None = None
    branches: list[float | None] = []

    def begin_next_phase(self) -> None:
        self.phase += 1
        self.epoch = self.window = self.waited = self.average_count = 0
        self.checks, self.by_epoch = [], []
        self.averaging = self.finished = False
        self.checked = None


def remark_on(steps: int) -> str:
    """What follows a line on the end of the time where it allowed hardly a step; nothing where it allowed enough."""
    few = f"; {counted(steps, 'step')} of training, from which a network learns next to nothing: give more time"
    return few if steps < FEW else ""


def described(changes: Changes) -> str:
    return ", ".join(f"{key} from {old} to {new}" for key, (old, new) in changes.items())


def read_progress(path: Path, facts: Any, phases: int = 2) -> Progress:
    """The progress that a checkpoint holds; raises UserError where no training in `phases` phases can have made it."""
    try:
        progress = msgspec.convert(facts, Progress)
        if missing := [key for key in Progress.__struct_fields__ if key not in facts]:
            raise msgspec.ValidationError(f"without {missing[0]}")
    except msgspec.ValidationError as error:
        raise UserError(f"{path}: its progress is not as elman writes it ({error}); restore the file") from None
    counts = [value for value in msgspec.structs.astuple(progress) if type(value) is int]
    if min(counts) < 0 or progress.phase >= phases:
        raise UserError(f"{path}: its progress has numbers that no training gives; restore the file")
    return progress


def non_monotone(history: Sequence[float], latest: float, interval: int) -> bool:
    """Whether `latest` is worse than the best of those more than `interval` checks old (Merity et al. 2018, alg. 1).

    `history` holds the validation losses before the latest, oldest first; `interval` is n of the paper.

    Example:
        >>> non_monotone([5.0, 4.0, 3.9, 3.8], 4.1, interval=2)
        True
        >>> non_monotone([5.0, 4.0, 3.9, 3.8], 3.95, interval=2)
        False
    """
    return len(history) > interval and latest > min(history[:-interval])


def record_validation(progress: Progress, phase: config.Training, nll: float, epoch: float) -> bool:
    """Record the NLL of a validation at `epoch` in the progress, and return whether it is the best so far.

    An NLL that is not finite is never the best.

    `averaging` is set when NT-ASGD begins to average, and `finished` when the phase is over: the main phase ends early
    by patience, fine-tuning by the non-monotone rule.
    """
    best = math.isfinite(nll) and (progress.best is None or nll < progress.best)
    if best:
        progress.best, progress.best_step, progress.best_epoch = nll, progress.step, epoch
        progress.waited = 0
    else:
        progress.waited += 1
    if isinstance(phase.averaging, config.NonMonotone) and not progress.averaging:
        progress.averaging = non_monotone(progress.checks, nll, phase.averaging.interval)
    if progress.phase and phase.fine_tune and non_monotone(progress.checks, nll, phase.fine_tune.interval):
        progress.finished = True
    if phase.patience and progress.waited >= phase.patience:
        progress.finished = True
    progress.checks.append(nll)
    progress.checked = progress.step
    return best


class Course:
    """The windows of the epochs of a phase.

    Args:
        windows: from the cap on random windows (`window.max_extra`) to the windows of the training data.
        window: the phase's.
    """

    def __init__(self, windows: Callable[[int | None], Windows], window: config.Window) -> None:
        self._windows, self._window = windows(window.max_extra), window
        self._planned: tuple[int, Sequence[Span]] = (-1, ())

    def spans(self, progress: Progress) -> Sequence[Span]:
        number = progress.phase * PHASE + progress.epoch
        if self._planned[0] != number:
            self._planned = (number, self._windows.spans(number))
        return self._planned[1]

    def ahead(self, progress: Progress) -> Iterator[Span]:
        """The windows from here on, as if the phase had no end."""
        yield from itertools.islice(self.spans(progress), progress.window, None)
        for epoch in itertools.count(progress.epoch + 1):
            yield from self._windows.spans(progress.phase * PHASE + epoch)

    def batch(self, span: Span) -> Batch:
        return self._windows.batch(span)

    def rate_share(self, span: Span) -> float:
        """The part of the learning rate that a window has: random windows have one in proportion to their length."""
        return span.length / self._window.length if self._window.random else 1.0

    def epoch(self, progress: Progress) -> float:
        return progress.epoch + progress.window / len(self.spans(progress))


def rate(schedule: Schedule, lr: float, epoch: float, epochs: int, history: Sequence[float]) -> float:
    """The learning rate after `epoch` of `epochs` epochs, where `lr` is the recipe's.

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
