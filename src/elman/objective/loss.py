"""The objective of training over one window: a loss plus penalties."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from elman import config
from elman.config.parts import part_of
from elman.config.plugins import wrong
from elman.config.training import Criterion, Penalty
from elman.data.batches import Batch
from elman.network.cores.core import Trace
from elman.network.model import LanguageModel
from elman.network.state import State
from elman.objective import penalties
from elman.objective.criteria import Seen


class Loss(NamedTuple):
    """A window's loss: the reduced NLL plus penalties, which is differentiated, and its detached parts.

    `nll_sum` is the sum of NLLs (nats) over the positions that count, `penalty` the sum of the penalties.
    """

    objective: Tensor
    nll_sum: Tensor
    num_counted: Tensor
    penalty: Tensor


class Objective:
    """A reduced NLL, or the loss of a plug-in, and penalties.

    The reduction is named by its kind (`elman.objective.criteria`), or is the record itself.
    """

    def __init__(self, penalties: Sequence[Penalty] = (), reduction: str | Criterion = "mean") -> None:
        self.penalties, self.criterion = tuple(penalties), part_of(reduction, Criterion)

    def __call__(self, model: LanguageModel, batch: Batch, state: State) -> tuple[Loss, State]:
        """The loss of `model` over `batch` from `state`, and the state after it."""
        trace, state = model.trace(batch.inputs, state)
        return self.of_trace(model, trace, batch), state

    def of_trace(self, model: LanguageModel, trace: Trace, batch: Batch) -> Loss:
        """The loss of `batch`, given the trace of the core of `model` over its inputs."""
        seen = Seen(model, trace, model.output.contexts(trace), batch)
        counted = seen.counted
        found = self.criterion(seen)
        if not isinstance(found, tuple) or len(found) != 2 or getattr(found[1], "shape", None) != counted.shape:
            raise wrong(self.criterion, "its call must return a loss and the NLL [T, B] of the targets")
        objective, each = _scalar(self.criterion, found[0]), found[1]
        nll_sum = (each * counted).sum()
        penalty = sum([_scalar(one, one(seen)) for one in self.penalties], objective.new_zeros(()))
        return Loss(objective + penalty, nll_sum, counted.sum(), penalty.detach())


def _scalar(part: Criterion | Penalty, value: object) -> Tensor:
    if not isinstance(value, Tensor) or value.ndim:
        raise wrong(part, f"its call must return a scalar tensor, not {value!r:.60}")
    return value


def build_objective(recipe: config.Training) -> Objective:
    """The objective of a recipe: its loss, and the penalties whose weight is not zero."""
    return Objective(penalties.chosen(recipe.penalties), recipe.loss)
