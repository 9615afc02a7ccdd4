"""What a validation decides: whether the model is the best, whether averaging begins, whether the phase is over."""

from typing import NamedTuple

from elman import config
from elman.learning.averaging import non_monotone
from elman.learning.phases import Phase
from elman.learning.progress import Progress


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
