"""The learning rules of sentences that do not depend on each other: whole ones, a batch at a time, without a state.

Of trees it is back-propagation through structure (Goller & Küchler 1996).
"""

from abc import abstractmethod

from elman import config
from elman.data.batches import Batch
from elman.errors import UserError
from elman.learning.bptt import Learner
from elman.network.model import LanguageModel
from elman.network.state import State
from elman.network.tag_model import TagModel
from elman.network.tree_model import TreeModel
from elman.objective.loss import Loss, Objective
from elman.objective.trees import tree_loss


class OfSentences(Learner):
    """The gradient of a loss of whole sentences; there is no state."""

    def state_before(self, model: LanguageModel, batch: Batch, state: State | None) -> State:  # noqa: ARG002
        return ()

    @abstractmethod
    def loss(self, model: LanguageModel, objective: Objective, batch: Batch) -> Loss:
        """The loss of a batch."""

    def __call__(self, model: LanguageModel, objective: Objective, batch: Batch, state: State) -> tuple[Loss, State]:  # noqa: ARG002
        loss = self.loss(model, objective, batch)
        loss.objective.backward()
        return loss._replace(objective=loss.objective.detach()), ()


class Tagging(OfSentences):
    """The gradient of the tags of words, back through whole sentences in the directions in which they are read."""

    def check(self, model: LanguageModel, batch: int) -> None:  # noqa: ARG002
        """Raise UserError unless the model is one of tags."""
        if not isinstance(model, TagModel):
            raise UserError('this rule is for tags; it needs model.core.kind = "sentence"')

    def loss(self, model: LanguageModel, objective: Objective, batch: Batch) -> Loss:
        assert isinstance(model, TagModel)
        assert batch.mask is not None, "sentences of a batch have different lengths"
        return objective.of_trace(model, model.read(batch.inputs, batch.mask), batch)


class ThroughStructure(OfSentences):
    """The gradient of the labels of nodes, and of the margin of a parser, through whole trees; there is no state."""

    def __init__(self, margin: config.Margin | None = None) -> None:
        self.margin = margin

    def check(self, model: LanguageModel, batch: int) -> None:  # noqa: ARG002
        """Raise UserError unless the model is one of trees."""
        if not isinstance(model, TreeModel):
            raise UserError('this rule is for trees; it needs model.core.kind = "recursive"')

    def loss(self, model: LanguageModel, objective: Objective, batch: Batch) -> Loss:  # noqa: ARG002
        assert isinstance(model, TreeModel)
        return tree_loss(model, batch, self.margin).reduced(self.margin)
