"""The learning rule of trees: back-propagation through structure (Goller & Küchler 1996), one batch at a time."""

from elman import config
from elman.data.windows import Batch
from elman.errors import UserError
from elman.learning.bptt import Learner
from elman.network.model import LanguageModel
from elman.network.state import State
from elman.network.tree_model import TreeModel
from elman.objective.loss import Loss, Objective
from elman.objective.trees import tree_loss


class ThroughStructure(Learner):
    """The gradient of the labels of nodes, and of the margin of a parser, through whole trees; there is no state."""

    def __init__(self, margin: config.Margin | None = None) -> None:
        self.margin = margin

    def check(self, model: LanguageModel, batch: int) -> None:  # noqa: ARG002
        """Raise UserError unless the model is one of trees."""
        if not isinstance(model, TreeModel):
            raise UserError('this rule is for trees; it needs model.core.kind = "recursive"')

    def state_before(self, model: LanguageModel, batch: Batch, state: State | None) -> State:  # noqa: ARG002
        """Nothing."""
        return ()

    def __call__(self, model: LanguageModel, objective: Objective, batch: Batch, state: State) -> tuple[Loss, State]:  # noqa: ARG002
        """Learn from one batch of trees."""
        assert isinstance(model, TreeModel)
        loss = tree_loss(model, batch, self.margin).reduced(self.margin)
        loss.objective.backward()
        return loss._replace(objective=loss.objective.detach()), ()
