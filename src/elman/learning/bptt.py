"""Truncated back-propagation through time: the gradient of one window, its beginning state taken as given."""

from elman.data.windows import Batch
from elman.model import LanguageModel
from elman.objective.loss import Loss, Objective
from elman.state import State, concatenate, detach, select


def bptt(model: LanguageModel, objective: Objective, batch: Batch, state: State, slices: int = 1) -> tuple[Loss, State]:
    """Add the gradient of the window's loss to every parameter's `.grad`.

    The truncation BPTT(h) is the length h of the window; h = 1 is the rule of Elman's and Jordan's networks. The state
    that comes back is detached: the next window goes on from it without a gradient.

    Args:
        model: the network, in training mode.
        objective: what is minimised.
        batch: the window.
        state: the state before it.
        slices: parts of the columns that are processed one after another, to save memory: the gradient of the mean is
            the same (each part draws its own dropout masks).

    """
    if slices == 1:
        loss, state = objective(model, batch, state)
        loss.objective.backward()
        return _detached(loss), detach(state)
    columns = batch.inputs.shape[1]
    parts, states = [], []
    for index in range(slices):
        rows = slice(index * columns // slices, (index + 1) * columns // slices)
        loss, after = objective(model, batch.columns(rows), select(state, rows))
        share = (rows.stop - rows.start) / columns
        (loss.objective * share).backward()
        parts.append(loss._replace(objective=loss.objective.detach() * share, penalty=loss.penalty * share))
        states.append(detach(after))
    return Loss(*(sum(values[1:], values[0]) for values in zip(*parts, strict=True))), concatenate(states)


def _detached(loss: Loss) -> Loss:
    return loss._replace(objective=loss.objective.detach())
