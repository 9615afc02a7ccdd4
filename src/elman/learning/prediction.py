"""The validation loss to come, predicted from two branches of the run itself.

After an eighth and after a quarter of its steps training branches off: within a quarter as many steps more the rate
falls linearly to 0, the loss is validated, and training continues from where it branched off, to the bit. What the
second branch gained over the first tells what is still gained from there to the end (`still_gained`;
docs/data.md).
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from elman.learning.progress import Progress
from elman.objective import perplexity

if TYPE_CHECKING:
    from elman.learning.trainer import Trainer

FRACTIONS = 1 / 8, 1 / 4
"""Of the steps, after which training branches off."""

LENGTH = 0.25
"""Steps of a branch, of those done before it."""

COST = LENGTH * sum(FRACTIONS)
"""Steps of both branches, of all steps."""

FEWEST = 10
"""Steps of a branch at least; shorter ones show nothing."""

LATE = 1.25
"""Up to this many times its fraction a branch is still taken; a run that was asked later to predict does without it."""

SLOPE, CAP, OFFSET, BRIEF_OFFSET = 0.78, 0.3, 0.018, 0.089
"""What is still gained, in nats: linear in the gain up to a cap, and more in up to `BRIEF` epochs, of new text."""

BRIEF = 2

MOST = 0.15
"""The most that is still gained, as a share of the loss of the second branch: on texts that repeat themselves."""


def due(progress: Progress, share: float) -> bool:
    """Whether a branch is due after a share of the steps of a phase, of which the main one is predicted."""
    taken = len(progress.branches)
    return progress.phase == 0 and taken < len(FRACTIONS) and share >= FRACTIONS[taken]


def steps_of(taken: int, step: int, share: float) -> int:
    """Steps of the branch that is due after `taken` others, steps and share of the steps; 0: too few, or too late."""
    steps, late = round(LENGTH * step), share > LATE * FRACTIONS[taken]
    return 0 if late or steps < FEWEST else steps


def still_gained(first: float, second: float, epochs: int) -> float:
    """The nats gained from the second branch to the end of `epochs` epochs, by the losses of both branches."""
    gained = (BRIEF_OFFSET if epochs <= BRIEF else OFFSET) + SLOPE * min(CAP, first - second)
    return min(max(0.0, gained), MOST * abs(second))


def predicted(losses: Sequence[float | None], epochs: int) -> float | None:
    """The validation NLL at the end of `epochs` epochs; None where a branch's is missing or not a number."""
    first, second = [*losses, None, None][:2]
    return None if first is None or second is None else second - still_gained(first, second, epochs)


def shown(losses: Sequence[float | None], epochs: int) -> dict[str, Any]:
    """What the branches so far show of the end of the epochs: `message`, `nll` of the last branch, `predicted`."""
    nll, end = losses[-1], predicted(losses, epochs)
    message = "no loss is predicted: the run has too few steps, or is too far on"
    if nll is not None:
        message = f"with a rate that falls to 0 here, validation NLL {nll:.3f}"
    if end is not None:
        message += f"; at the end about {end:.3f}, perplexity about {perplexity(end):.3g}"
    return {"message": message, "nll": nll, "predicted": end}


def compared(progress: Progress, epochs: int) -> str | None:
    """The best loss of the main phase and the prediction of it, in a line; None before its end and without one."""
    end, best = predicted(progress.branches, epochs), progress.best
    if progress.phase or not progress.finished or end is None or best is None:
        return None
    error = math.expm1(min(700.0, end - best))
    return f"best validation NLL {best:.3f}, {end:.3f} was predicted: a perplexity {error:+.1%} off"


def descend(
    trainer: "Trainer", left: Callable[[int], float], asked_to_stop: Callable[[], bool], steps: int | None
) -> bool:
    """Take steps, at the present rate times `left`(steps so far), until that is zero.

    False where a process of the team has to stop within them. Watchers follow each of the `steps`, where their number
    is given.
    """
    update, progress, epoch, lr = trainer.update, trainer.progress, trainer.now(), trainer.rate()
    for taken, span in enumerate(trainer.course.ahead(progress)):
        if (share := left(taken)) <= 0:
            break
        if any(trainer.folder.team.any(asked_to_stop())):
            return False
        for watcher in trainer.folder.watchers if steps else ():
            watcher.branch(taken, steps or 0)
        update.gradient(trainer.course.batch(span).to(trainer.model.device), epoch, progress.step + taken)
        update.clip()
        update.apply(lr * share * trainer.course.rate_share(span))
    return True
