"""Teacher forcing of Jordan's network: while it learns, the true outputs are fed back (Williams & Zipser 1989)."""

import torch
from torch.nn.functional import one_hot

from elman.data.batches import Batch
from elman.errors import UserError
from elman.learning.bptt import Learner
from elman.learning.single_step import OneStep
from elman.network.cores.core import Trace
from elman.network.cores.jordan import JordanCore
from elman.network.model import LanguageModel
from elman.network.state import State, leaves
from elman.objective.loss import Loss, Objective


class FedBackTruth(Learner):
    """Plain back-propagation, c_t = decay c_{t-1} + the true y_{t-1}: no step depends on what the network computed.

    The state after a window is that of the truth. Tested, the network hears its own output.
    """

    def check(self, model: LanguageModel, batch: int) -> None:  # noqa: ARG002
        """Raise UserError unless the model feeds back its own output."""
        if not (isinstance(model.core, JordanCore) and model.core.feedback == "output"):
            raise UserError("the rule forced feeds back true outputs, as only Jordan's network can; use --cells jordan")

    def __call__(self, model: LanguageModel, objective: Objective, batch: Batch, state: State) -> tuple[Loss, State]:
        core = model.core
        assert isinstance(core, JordanCore)
        (context,) = leaves(state)
        contexts = [context]
        for symbols in batch.targets:
            contexts.append(core.decay * contexts[-1] + one_hot(symbols, core.context_size).to(context.dtype))
        levels, _ = OneStep(model)(batch.inputs.flatten(), (torch.cat(contexts[:-1]),))
        trace = tuple(level.unflatten(0, batch.inputs.shape) for level in levels)
        loss = objective.of_trace(model, Trace(trace, trace), batch)
        loss.objective.backward()
        return loss._replace(objective=loss.objective.detach()), (contexts[-1],)
