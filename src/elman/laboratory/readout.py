"""The readout of an echo state network: linear, of real values, by ridge regression (Jaeger 2001)."""

import torch
from torch import Tensor

from elman.data.windows import Batch
from elman.laboratory.rules import learning_rule
from elman.learning.learner import Learner
from elman.learning.ridge import NormalEquations
from elman.learning.steps import learns
from elman.model import LanguageModel
from elman.objective.loss import Loss, Objective
from elman.output.gaussian import Gaussian
from elman.state import State

PENALTY = 1e-6
"""Of the ridge regression, on the sum of squares over all that was heard."""


class RidgeReadout(Learner):
    """Sets the readout to what fits everything heard so far best; it fills no gradient and leaves all else alone.

    The normal equations of all windows are added up (`learning.ridge`), so the solution is the one in closed form.
    """

    def __init__(self) -> None:
        self.equations: NormalEquations | None = None

    @torch.no_grad()
    def __call__(self, model: LanguageModel, objective: Objective, batch: Batch, state: State) -> tuple[Loss, State]:
        """Learn from one window; the loss is that after it."""
        choice = model.output.choice
        assert isinstance(choice, Gaussian)
        assert batch.mask is not None
        trace, state = model.trace(batch.inputs, state)
        states, targets = _with_one(trace.top[batch.mask]), batch.targets[batch.mask]
        if self.equations is None:
            self.equations = NormalEquations(states.shape[1], targets.shape[1])
        self.equations.add(states, targets)
        weights = self.equations.solve(PENALTY).t()
        choice.readout.weight.copy_(weights[:, :-1])
        choice.readout.bias.copy_(weights[:, -1])
        return objective.of_trace(model, trace, batch), state


def _with_one(states: Tensor) -> Tensor:
    return torch.cat([states, torch.ones_like(states[:, :1])], dim=1)


def learner_of(model: LanguageModel, rule: str) -> Learner:
    """How a network of the laboratory learns: by the rule of a name, or, where only a linear readout can, by ridge.

    Raises:
        UserError: there is no such rule.

    """
    learner = learning_rule(rule)
    linear = isinstance(model.output.choice, Gaussian)
    return RidgeReadout() if linear and not learns(model.core) else learner
