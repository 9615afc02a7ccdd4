"""The learning rule of trees: back-propagation through structure (Goller & Küchler 1996), one batch at a time."""

from elman import config
from elman.data.batches import Batch
from elman.errors import UserError
from elman.learning.sentences import OfSentences
from elman.network.model import LanguageModel
from elman.network.tree_model import TreeModel
from elman.objective.loss import Loss, Objective
from elman.objective.trees import tree_loss


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
