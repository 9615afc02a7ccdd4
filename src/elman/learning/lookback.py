"""Back-propagation step by step: over h steps from every step (BPTT(h)), attenuated, or with true outputs fed back.

The error that an attenuated past sends k steps back is multiplied by factor^k, so that what lies far back counts less
and nothing is cut off. With a factor of 1 nothing is attenuated; 0 is BPTT(1).
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from elman.data.batches import Batch
from elman.errors import UserError
from elman.learning.bptt import Learner
from elman.learning.single_step import (
    OneStep,
    add_gradients,
    differentiable,
    error_at_levels,
    in_parallel,
    over_window,
    walk,
)
from elman.network.cores.core import Trace
from elman.network.cores.jordan import JordanCore
from elman.network.model import LanguageModel
from elman.network.state import State, detach, leaves, map_state
from elman.objective.loss import Loss, Objective


class Lookback(Learner):
    """BPTT(h): the error of every step goes back h steps and no further (Williams & Peng 1990; Werbos 1990).

    In windows of h steps the last step would look back h steps and the first one 1; here look-backs overlap,
    and each step has its own, up to the beginning of the window. `steps` = 1 is the rule of Elman's and Jordan's
    networks. Given the states, single steps do not depend on each other, so all T steps of a window are one graph of
    T*B rows, and errors go back by one step at a time in all of them: h backward passes, where a network of n units
    takes O(h n^2) operations per step. `factor` attenuates the errors at every step back.
    """

    def __init__(self, steps: int, factor: float = 1.0) -> None:
        self.steps, self.factor = steps, factor

    def __call__(self, model: LanguageModel, objective: Objective, batch: Batch, state: State) -> tuple[Loss, State]:
        step = OneStep(model)
        seen = walk(step, batch.inputs, state)
        loss, errors = error_at_levels(model, objective, batch, seen.levels)
        graph = in_parallel(step, batch.inputs, seen.states)
        parameters, before, rows = step.learnt, list(leaves(graph.before)), batch.inputs.shape[1]
        outputs, back = differentiable(graph.levels, [error.flatten(0, 1) for error in errors])
        depth = min(self.steps, len(batch.inputs))
        for lag in range(depth):
            if not outputs:
                break  # no error passes a reservoir
            found = torch.autograd.grad(
                outputs, [*parameters, *before], back, retain_graph=lag + 1 < depth, allow_unused=True
            )
            add_gradients(parameters, found[: len(parameters)])
            earlier = [
                torch.zeros_like(leaf) if gradient is None else self.factor * gradient
                for leaf, gradient in zip(before, found[len(parameters) :], strict=True)
            ]
            later = [torch.cat([error[rows:], torch.zeros_like(error[:rows])]) for error in earlier]
            outputs, back = differentiable(leaves(graph.after), later)
        return loss, seen.last


class Attenuated(Learner):
    """One back-propagation per window, the errors multiplied by `factor` at every step back in time.

    With the loss L = sum_t L_t and the state s, the error of s_t is d_t = direct_t + factor (ds_{t+1}/ds_t)' d_{t+1}.
    Errors of the layers of one step are not attenuated on their way down.
    """

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, model: LanguageModel, objective: Objective, batch: Batch, state: State) -> tuple[Loss, State]:
        step, levels = OneStep(model), []
        for symbols in batch.inputs:
            seen, state = step(symbols, map_state(lambda leaf: _Attenuation.apply(leaf, self.factor), state))  # type: ignore[no-untyped-call]
            levels.append(seen)
        stacked = over_window(levels)
        loss = objective.of_trace(model, Trace(stacked, stacked, inputs=batch.inputs), batch)
        loss.objective.backward()
        return loss._replace(objective=loss.objective.detach()), detach(state)


class _Attenuation(torch.autograd.Function):
    """The identity, of which the gradient is multiplied by a factor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.factor * gradient, None


class FedBackTruth(Learner):
    """Plain back-propagation, c_t = decay c_{t-1} + the true y_{t-1}: no step depends on what the network computed.

    The state after a window is the truth's. Tested, the network hears its own output.
    """

    def check(self, model: LanguageModel, batch: int) -> None:  # noqa: ARG002
        """Raise UserError unless the model feeds back its own output."""
        if not (isinstance(model.core, JordanCore) and model.core.hears):
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
