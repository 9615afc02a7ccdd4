"""A learning rule: from a window to the gradient in `.grad`, and the state to go on from."""

from abc import ABC, abstractmethod

from elman.data.windows import Batch
from elman.learning.bptt import bptt
from elman.model import LanguageModel
from elman.objective.loss import Loss, Objective
from elman.seq2seq import SequenceToSequence
from elman.state import State, restart


class Learner(ABC):
    """Adds the gradient of a window's loss to every parameter's `.grad`.

    Its state is a value like a model's, of which it is the greater part: every leaf is batch first, so that sequences
    are begun, selected and saved in the same way.
    """

    def check(self, model: LanguageModel, batch: int) -> None:  # noqa: B027
        """Raises UserError where the rule cannot serve this model with `batch` columns."""

    def begin(self, model: LanguageModel, batch: int) -> State:
        """The state of `batch` sequences that have not begun."""
        return model.begin(batch)

    def model_state(self, state: State) -> State:
        """The model's part of it."""
        return state

    def state_before(self, model: LanguageModel, batch: Batch, state: State | None, columns: int) -> State:
        """The state that a window is learnt from.

        Args:
            model: the network.
            batch: the window. Where it has a source, its targets begin here, and the gradient goes on into the source.
            state: after the window before; columns that are fresh begin anew. None: all begin.
            columns: of a text or of music.

        """
        if batch.source is not None:
            assert isinstance(model, SequenceToSequence)
            return model.read(batch.source)
        beginning = self.begin(model, columns)
        assert batch.fresh is not None
        return beginning if state is None else restart(state, batch.fresh, beginning)

    @abstractmethod
    def __call__(self, model: LanguageModel, objective: Objective, batch: Batch, state: State) -> tuple[Loss, State]:
        """Learn from one window; the state that comes back has no gradient history."""


class WholeWindow(Learner):
    """Each window by one back-propagation (`learning.bptt`)."""

    def __init__(self, slices: int = 1) -> None:
        self.slices = slices

    def __call__(self, model: LanguageModel, objective: Objective, batch: Batch, state: State) -> tuple[Loss, State]:
        """Learn from one window."""
        return bptt(model, objective, batch, state, self.slices)
