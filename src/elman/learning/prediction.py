"""The validation loss to come, predicted from two branches of the run itself.

After an eighth and after a quarter of its steps training branches off: within a quarter as many steps more the rate
falls linearly to 0, the loss is validated, and training continues from where it branched off, to the bit. The loss at
the end is then that of the second branch less a multiple, `gain`, of what it gained over the first (docs/race.md).
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from elman.learning.course import Course
from elman.learning.progress import Progress
from elman.learning.team import Team
from elman.learning.update import Update
from elman.objective import perplexity

FRACTIONS = 1 / 8, 1 / 4
"""Of the steps, after which training branches off."""

LENGTH = 0.25
"""Steps of a branch, of those done before it."""

COST = LENGTH * sum(FRACTIONS)
"""Steps of both branches, of all steps."""

FEWEST = 10
"""Steps of a branch at least; shorter ones show nothing."""

LATE = 1.25
"""Up to so many times its fraction a branch is still taken; a run that was asked later to predict does without it."""

BRIEF, BRIEF_GAIN, GAIN = 2, 1.16, 0.82
"""Up to so many epochs, in which every step still shows something new, the first multiple holds, beyond the second."""

ERROR = 0.04
"""The root mean square error of the prediction, nats."""


class Place(NamedTuple):
    """Where a branch begins: the share of all steps, steps and epochs done, and the learning rate there."""

    share: float
    step: int
    epoch: float
    lr: float

    @property
    def steps(self) -> int:
        """How many steps the branch has."""
        return round(LENGTH * self.step)


def due(losses: Sequence[float | None], share: float) -> bool:
    """Whether a branch is due after a share of the steps, where there are so many losses of branches."""
    return len(losses) < len(FRACTIONS) and share >= FRACTIONS[len(losses)]


class Branching(NamedTuple):
    """What trains and validates a branch: the training step, the windows, and the validation NLL (nats per token)."""

    update: Update
    course: Course
    validate: Callable[[], float]

    def take(self, place: Place, progress: Progress, stop: Callable[[], bool], team: Team) -> bool:
        """Take the branch that is due and record its loss; False where a process of the team has to stop within it.

        One that is too short, or too far behind its place, has no loss.
        """
        late = place.share > LATE * FRACTIONS[len(progress.branches)]
        nll: float | None = math.nan
        if place.steps >= FEWEST and not late:
            nll = self._loss(place, progress, lambda: any(team.any(stop())))
        if nll is not None:
            progress.branches.append(nll if math.isfinite(nll) else None)
        return nll is not None

    def _loss(self, place: Place, progress: Progress, stopped: Callable[[], bool]) -> float | None:
        """The loss at the end of a branch; weights, moments, averages, states and random numbers are kept."""
        update = self.update
        count = 0 if update.average is None else update.average.count
        kept = {name: tensor.clone() for name, tensor in update.tensors().items()}
        try:
            for taken, span in enumerate(itertools.islice(self.course.ahead(progress), place.steps)):
                if stopped():
                    return None
                batch = self.course.batch(span).to(update.model.device)
                update.gradient(batch, place.epoch, place.step + taken)
                update.clip()
                update.apply(place.lr * (1 - taken / place.steps) * self.course.rate_share(span))
            return self.validate()
        finally:
            update.state = None
            update.restore(kept, count)


def gain(epochs: int) -> float:
    """What is still gained from the second branch to the end of so many epochs, in units of its gain over the first."""
    return BRIEF_GAIN if epochs <= BRIEF else GAIN


def predicted(losses: Sequence[float | None], epochs: int) -> float | None:
    """The validation NLL at the end of so many epochs; None where that of a branch is missing or not a number."""
    first, second = [*losses, None, None][:2]
    return None if first is None or second is None else second - gain(epochs) * (first - second)


def described(progress: Progress, epochs: int) -> str:
    """What the branches show so far of the end after so many epochs, in a line."""
    if (latest := progress.branches[-1]) is None:
        return "it gives no loss, so that none is predicted"
    shown = f"with a rate that falls to 0 here, validation NLL {latest:.3f}"
    if (end := predicted(progress.branches, epochs)) is None:
        return shown
    low, high = (perplexity(end + sign * ERROR) for sign in (-1, 1))
    return f"{shown}; at the end about {end:.3f}, perplexity {perplexity(end):.1f} ({low:.1f} to {high:.1f})"


def compared(progress: Progress, epochs: int) -> str | None:
    """The best loss beside the prediction, in a line; None where training is not finished or nothing was predicted."""
    end, best = predicted(progress.branches, epochs), progress.best
    if not progress.finished or end is None or best is None:
        return None
    error = math.expm1(min(700.0, end - best))
    return f"best validation NLL {best:.3f}, {end:.3f} was predicted: a perplexity {error:+.1%} off"
