"""Truncated back-propagation through time over whole windows, and the interface of all learning rules."""

from abc import ABC, abstractmethod

from elman.data.batches import Batch
from elman.network.model import LanguageModel
from elman.network.state import State, detach, restart
from elman.objective.loss import Loss, Objective


class Learner(ABC):
    """A learning rule: adds the gradient of a window's loss to every parameter's `.grad`.

    Its state is a value which contains the model's state; every leaf is batch first, so that sequences are begun,
    selected and saved in the same way.
    """

    def check(self, model: LanguageModel, batch: int) -> None:  # noqa: B027
        """Raise UserError where the rule cannot train this model with `batch` columns."""

    def begin(self, model: LanguageModel, batch: int) -> State:
        """The state of `batch` sequences that have not begun."""
        return model.begin(batch)

    def model_state(self, state: State) -> State:
        """The model's part of a state."""
        return state

    def state_before(self, model: LanguageModel, batch: Batch, state: State | None) -> State:
        """The state from which a window is processed, given the state after the one before (None: all columns begin).

        Fresh columns begin a new sequence. Where the window has a source its targets begin here, and the gradient
        reaches the source.
        """
        if batch.source is not None:
            from elman.network.seq2seq import SequenceToSequence

            assert isinstance(model, SequenceToSequence)
            return model.read(batch.source)
        beginning = self.begin(model, batch.inputs.shape[1])
        if state is None or batch.fresh is None:
            return beginning if state is None else state
        return restart(state, batch.fresh, beginning)

    @abstractmethod
    def __call__(self, model: LanguageModel, objective: Objective, batch: Batch, state: State) -> tuple[Loss, State]:
        """Learn from one window, from the state before it; the state returned has no gradient history."""


def bptt(model: LanguageModel, objective: Objective, batch: Batch, state: State) -> tuple[Loss, State]:
    """Add the gradient of the window's loss to every parameter's `.grad`.

    The truncation BPTT(h) is the length h of the window; h = 1 is the rule of Elman's and Jordan's networks. The state
    returned is detached: the next window continues from it without a gradient.
    """
    loss, state = objective(model, batch, state)
    loss.objective.backward()
    return loss._replace(objective=loss.objective.detach()), detach(state)


class WholeWindow(Learner):
    """Each window by one back-propagation; see `bptt`."""

    def __call__(self, model: LanguageModel, objective: Objective, batch: Batch, state: State) -> tuple[Loss, State]:
        return bptt(model, objective, batch, state)
