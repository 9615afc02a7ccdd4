"""Where a training run is: everything that a checkpoint must hold beside tensors."""

from typing import Any, NamedTuple

import msgspec

from elman import config
from elman.learning.averaging import non_monotone
from elman.learning.schedules import Phase


class Progress(msgspec.Struct):
    """Counters and histories; a plain value that goes through JSON.

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
        finished: nothing is left to do.
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

    def to_facts(self) -> dict[str, Any]:
        """For a checkpoint."""
        return msgspec.to_builtins(self)

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> "Progress":
        """The inverse of `to_facts`."""
        return msgspec.convert(facts, cls)

    def next_phase(self) -> None:
        """Begin the next phase at its first window."""
        self.phase += 1
        self.epoch = self.window = self.waited = 0
        self.checks, self.by_epoch = [], []
        self.averaging, self.average_count = False, 0


# FOLDED learning/verdict.py: What a validation decides: whether the model is the best, whether averaging begins, whether the phase is over.
class Verdict(NamedTuple):
    """What follows from a validation.

    Attributes:
        best: no model was better so far.
        averages: the weights are averaged from now on, and were not before.

    """

    best: bool
    averages: bool


def judge(progress: Progress, phase: Phase, nll: float, epoch: float) -> Verdict:
    """Take the NLL of a validation, at `epoch`, into the progress; a phase that is over leaves it `finished`."""
    best = progress.best is None or nll < progress.best
    if best:
        progress.best, progress.best_step, progress.best_epoch = nll, progress.step, epoch
        progress.waited = 0
    else:
        progress.waited += 1
    averages = (
        not progress.averaging
        and isinstance(phase.averaging, config.NonMonotone)
        and non_monotone(progress.checks, nll, phase.averaging.interval)
    )
    progress.averaging = progress.averaging or averages
    if phase.stop_interval and non_monotone(progress.checks, nll, phase.stop_interval):
        progress.finished = True
    if phase.patience and progress.waited >= phase.patience:
        progress.finished = True
    progress.checks.append(nll)
    return Verdict(best, averages)
