"""The position of a training run: its phases, counters and histories, and the effect of a validation."""

import math
from pathlib import Path
from typing import Any

import msgspec

from elman import config
from elman.errors import UserError
from elman.learning.averaging import non_monotone


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
        averaging=config.Immediate(),
        epochs=fine.epochs,
        window=window,
        patience=None,
    )
    return [training, fine_tuning]


def averages_at_once(phase: config.Training) -> bool:
    """Whether the weights are averaged from the first step of a phase on."""
    return not isinstance(phase.averaging, config.NonMonotone | None)


class Progress(msgspec.Struct):
    """Counters and histories, which a checkpoint holds beside its tensors.

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
        """Move to the first window of the next phase."""
        self.phase += 1
        self.epoch = self.window = self.waited = self.average_count = 0
        self.checks, self.by_epoch = [], []
        self.averaging = self.finished = False
        self.checked = None


def read_progress(path: Path, facts: Any, phases: int = 2) -> Progress:
    """The progress that a checkpoint holds; raises UserError where no training in so many phases can have made it."""
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
