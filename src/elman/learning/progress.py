"""Where a training run is: its phases, its counters and histories, and what a validation decides."""

from typing import NamedTuple

import msgspec

from elman import config
from elman.learning.optimisers import non_monotone
from elman.learning.schedules import Schedule


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """A part of training with one optimiser: the main phase, or fine-tuning from its best model.

    Attributes:
        optimiser, weight_decay, schedule, averaging, epochs: as in the recipe.
        max_extra: the cap on random windows.
        stop_interval: stop by the non-monotone rule with this interval; None: never.
        patience: stop after so many validations without a new best; None: never.

    """

    optimiser: config.SGD | config.Adam | config.RMSprop
    weight_decay: float
    schedule: Schedule
    averaging: config.NonMonotone | config.Immediate | config.Exponential | None
    epochs: int
    max_extra: int | None
    stop_interval: int | None = None
    patience: int | None = None

    @property
    def averages_at_once(self) -> bool:
        """Whether the weights are averaged from the first step on."""
        return not isinstance(self.averaging, config.NonMonotone | None)

    @property
    def average_decay(self) -> float | None:
        """The decay of an exponential average; None for the equal average."""
        return self.averaging.decay if isinstance(self.averaging, config.Exponential) else None


def phases_of(training: config.Training) -> list[Phase]:
    """The phases of a recipe, in order."""
    main = Phase(
        optimiser=training.optimiser,
        weight_decay=training.weight_decay,
        schedule=training.schedule,
        averaging=training.averaging,
        epochs=training.epochs,
        max_extra=training.window.max_extra,
        patience=training.patience,
    )
    if (fine := training.fine_tune) is None:
        return [main]
    fine_tuning = Phase(
        optimiser=config.SGD(lr=fine.lr),
        weight_decay=training.weight_decay,
        schedule=config.Constant(),
        averaging=config.Immediate(),
        epochs=fine.epochs,
        max_extra=training.window.max_extra if fine.max_extra is None else fine.max_extra,
        stop_interval=fine.interval,
    )
    return [main, fine_tuning]


class Progress(msgspec.Struct):
    """Counters and histories, which a checkpoint holds beside its tensors.

    Attributes:
        phase: 0 is the main phase, 1 fine-tuning.
        epoch: epochs done in this phase.
        window: windows done in this epoch.
        step: optimiser steps in all phases.
        checks: validation NLLs of this phase, oldest first.
        by_epoch: the validation NLL after each epoch of this phase, for schedules.
        best: the best validation NLL of all phases, and the step and epoch it belongs to.
        waited: validations since the best.
        averaging: whether weights are being averaged.
        average_count: steps in the average.
        finished: training is done.
        seconds: time spent training, resumptions included.
        nll_sum, count, penalty_sum, windows_logged: since the last line of metrics.

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

    def begin_next_phase(self) -> None:
        """Move to the first window of the next phase."""
        self.phase += 1
        self.epoch = self.window = self.waited = self.average_count = 0
        self.checks, self.by_epoch = [], []
        self.averaging = self.finished = False


class Decision(NamedTuple):
    """What follows from a validation.

    Attributes:
        best: the model is the best so far.
        begin_averaging: the weights are averaged from now on, and were not before.

    """

    best: bool
    begin_averaging: bool


def decide(progress: Progress, phase: Phase, nll: float, epoch: float) -> Decision:
    """Record the NLL of a validation at `epoch` in the progress; when the phase is over, `finished` is set."""
    best = progress.best is None or nll < progress.best
    if best:
        progress.best, progress.best_step, progress.best_epoch = nll, progress.step, epoch
        progress.waited = 0
    else:
        progress.waited += 1
    begin_averaging = (
        not progress.averaging
        and isinstance(phase.averaging, config.NonMonotone)
        and non_monotone(progress.checks, nll, phase.averaging.interval)
    )
    progress.averaging = progress.averaging or begin_averaging
    if phase.stop_interval and non_monotone(progress.checks, nll, phase.stop_interval):
        progress.finished = True
    if phase.patience and progress.waited >= phase.patience:
        progress.finished = True
    progress.checks.append(nll)
    return Decision(best, begin_averaging)
