"""The objective of training over one window: the negative log-likelihood plus penalties."""

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

from torch import Tensor

from elman import config
from elman.data.batches import Batch
from elman.network.cores.core import Trace
from elman.network.model import LanguageModel
from elman.network.state import State
from elman.objective import penalties as terms
from elman.objective.penalties import Penalty, WeightPenalty

Reduction = Literal["mean", "sum"]


class Loss(NamedTuple):
    """A window's loss: the reduced NLL plus penalties, which is differentiated, and its detached parts.

    `nll_sum` is the sum of NLLs (nats) over the positions that count, `penalty` that of the penalties.
    """

    objective: Tensor
    nll_sum: Tensor
    num_counted: Tensor
    penalty: Tensor


class Objective:
    """Reduced NLL plus penalties, on activations and (`of_weights`) on the weights alone.

    The reduction is the "mean" over the positions (AWD-LSTM), or the "sum" over the steps and mean over the batch
    (Zaremba et al. 2014; thesis 3.5). Learning rates and clipping thresholds belong to the one they were tuned with.
    """

    def __init__(
        self, penalties: Sequence[Penalty] = (), reduction: Reduction = "mean", of_weights: Sequence[WeightPenalty] = ()
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
        count, whole = counted.sum(), batch.whole
        if self.reduction == "mean":
            reduced = counted * (1.0 / (count if whole is None else whole.counted.to(count.dtype)))
        else:
            reduced = counted * (1.0 / (batch.targets.shape[1] if whole is None else whole.columns))
        objective, each = model.output.nll(contexts, batch.targets, reduced)
        nll_sum = (each * counted).sum()
        on_activations = [of(trace, contexts, batch) for of in self.penalties]
        on_weights = [of(model) * batch.share for of in self.of_weights]
        penalty = sum([*on_activations, *on_weights], objective.new_zeros(()))
        return Loss(objective + penalty, nll_sum, count, penalty.detach())


def build_objective(recipe: config.Training) -> Objective:
    """The objective of a recipe: the negative log-likelihood and the penalties whose weight is not zero."""
    weights = recipe.penalties
    balance = terms.balance_columns if weights.balance_form == "columns" else terms.balance
    on_activations = (
        (terms.activation, weights.ar),
        (terms.temporal_activation, weights.tar),
        (balance, weights.balance),
    )
    hinge = terms.incremental_hinge if weights.stability_tier == 2 else terms.fixed_point_hinge
    of_weights = [partial(hinge, weights.stability, weights.stability_margin)] if weights.stability else []
    return Objective([partial(term, weight) for term, weight in on_activations if weight], recipe.loss, of_weights)
