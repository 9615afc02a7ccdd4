"""A learning rule: from a window to the gradient in `.grad`, and the state to go on from."""

from abc import ABC, abstractmethod

from elman.data.windows import Batch
from elman.learning.bptt import bptt
from elman.model import LanguageModel
from elman.objective.loss import Loss, Objective
from elman.state import State


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
