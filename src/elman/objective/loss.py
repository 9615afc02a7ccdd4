"""The objective of training over one window: the negative log-likelihood plus penalties."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from torch import Tensor

from elman import config
from elman.data.windows import Batch
from elman.network.cores.core import Trace
from elman.network.model import LanguageModel
from elman.network.state import State
from elman.objective.penalties import (
    ActivationPenalty,
    BalancePenalty,
    FixedPointPenalty,
    IncrementalPenalty,
    Penalty,
    TemporalActivationPenalty,
    WeightPenalty,
)

Reduction = Literal["mean", "sum"]


class Loss(NamedTuple):
    """The parts of a window's loss.

    Attributes:
        objective: the reduced NLL plus the penalties, which is differentiated.
        nll_sum: the sum of NLLs over the counted positions (nats), detached.
        num_counted: how many positions count.
        penalty: the sum of the penalties, detached.
    """

    objective: Tensor
    nll_sum: Tensor
    num_counted: Tensor
    penalty: Tensor


class Objective:
    """Reduced NLL plus penalties.

    Args:
        penalties: on activations, weights included.
        reduction: "mean" over the positions (AWD-LSTM), or "sum" over the steps and mean over the batch (Zaremba et
            al. 2014; thesis 3.5). Learning rates and clipping thresholds belong to the reduction they were tuned with.
        of_weights: penalties on the weights alone.
    """

    def __init__(
        self,
        penalties: Sequence[Penalty] = (),
        reduction: Reduction = "mean",
        of_weights: Sequence[WeightPenalty] = (),
    ) -> None:
        self.penalties, self.reduction, self.of_weights = tuple(penalties), reduction, tuple(of_weights)

    def __call__(self, model: LanguageModel, batch: Batch, state: State) -> tuple[Loss, State]:
        """The loss of `model` over `batch` from `state`, and the state after it."""
        trace, state = model.trace(batch.inputs, state)
        return self.of_trace(model, trace, batch), state

    def of_trace(self, model: LanguageModel, trace: Trace, batch: Batch) -> Loss:
        """The loss of `batch`, given the trace of the core of `model` over its inputs."""
        contexts = model.output.contexts(trace)
        counted = trace.top.new_ones(trace.top.shape[:2]) if batch.mask is None else batch.mask.to(trace.top.dtype)
        count = counted.sum()
        scale = 1.0 / count if self.reduction == "mean" else 1.0 / batch.targets.shape[1]
        objective, each = model.output.nll(contexts, batch.targets, counted * scale)
        nll_sum = (each * counted).sum()
        penalty = objective.new_zeros(())
        for penalise in self.penalties:
            penalty = penalty + penalise(trace, contexts)
        for penalise_weights in self.of_weights:
            penalty = penalty + penalise_weights(model)
        return Loss(objective + penalty, nll_sum, count, penalty.detach())


def build_objective(recipe: config.Training) -> Objective:
    """The objective of a recipe: the negative log-likelihood and the penalties whose weight is not zero."""
    weights = recipe.penalties
    penalties: list[Penalty] = []
    if weights.ar:
        penalties.append(ActivationPenalty(weights.ar))
    if weights.tar:
        penalties.append(TemporalActivationPenalty(weights.tar))
    if weights.balance:
        penalties.append(BalancePenalty(weights.balance, columns=weights.balance_form == "columns"))
    of_weights: list[WeightPenalty] = []
    if weights.stability:
        trained_for = IncrementalPenalty if weights.stability_tier == 2 else FixedPointPenalty
        of_weights.append(trained_for(weights.stability, weights.stability_margin))
    return Objective(penalties, recipe.loss, of_weights)
