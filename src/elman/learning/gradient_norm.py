"""The regulariser of vanishing gradients: errors keep their norm back in time (Pascanu et al. 2013, eq. 9).

    Omega = sum_k ( ||dE/dx_{k+1} dx_{k+1}/dx_k|| / ||dE/dx_{k+1}|| - 1 )^2

with x the state. As in the paper the gradient of Omega is the immediate one: the states and dE/dx_{k+1} are held
constant, and only the Jacobian's own dependence on the weights counts.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from elman.data.batches import Batch
from elman.errors import UserError
from elman.learning.bptt import Learner
from elman.learning.single_step import OneStep, StepOf, add_gradients, differentiable, flat, in_parallel, over_window
from elman.network.cores.core import Trace
from elman.network.fast.matmul import differentiable_twice
from elman.network.model import LanguageModel
from elman.network.state import State, leaves, map_state
from elman.objective.loss import Loss, Objective


class GradientNorm(Learner):
    """A learning rule with weight * Omega (summed over steps, averaged over the batch) added to its loss.

    The window is run a second time step by step, and a gradient is differentiated: about four times the work.
    """

    def __init__(self, rule: Learner, weight: float) -> None:
        self.rule, self.weight = rule, weight

    def check(self, model: LanguageModel, batch: int) -> None:
        """Raise UserError where the rule does, or where the Jacobian depends on no trained weights."""
        if not OneStep(model).learns_recurrence():
            raise UserError(
                "training.penalties.gradient_norm acts on trained recurrent weights, and this core has none (such as a"
                " reservoir or a window); set it to 0 or use another core"
            )
        self.rule.check(model, batch)

    def begin(self, model: LanguageModel, batch: int) -> State:
        return self.rule.begin(model, batch)

    def model_state(self, state: State) -> State:
        return self.rule.model_state(state)

    def __call__(self, model: LanguageModel, objective: Objective, batch: Batch, state: State) -> tuple[Loss, State]:
        step = OneStep(model)
        states, errors = errors_back(model, step, objective, batch, self.rule.model_state(state))
        omega = self.weight * batch.share * preservation(step, batch.inputs, states[:-1], errors[1:])
        parameters = step.learnt
        add_gradients(parameters, torch.autograd.grad(omega, parameters, allow_unused=True))
        loss, state = self.rule(model, objective, batch, state)
        omega = omega.detach()
        return loss._replace(objective=loss.objective + omega, penalty=loss.penalty + omega), state


def errors_back(
    model: LanguageModel, step: OneStep, objective: Objective, batch: Batch, state: State
) -> tuple[list[State], list[State]]:
    """The T + 1 states of a window, including the one before it, and dE/dx for each, E the window's loss."""

    def loss(levels: tuple[Tensor, ...]) -> Tensor:
        return objective.of_trace(model, Trace(levels, levels, inputs=batch.inputs), batch).objective

    return errors_of(step, batch.inputs, state, loss)


def errors_of(
    step: StepOf, inputs: Tensor, state: State, loss: Callable[[tuple[Tensor, ...]], Tensor]
) -> tuple[list[State], list[State]]:
    """The same of a step that reads inputs [T, B, ...], and a loss of the levels, each [T, B, _]."""
    states, levels = [map_state(lambda leaf: leaf.detach().requires_grad_(), state)], []
    for now in inputs:
        seen, after = step(now, states[-1])
        levels.append(seen)
        states.append(after)
    total = loss(over_window(levels))
    every = [leaf for one in states for leaf in leaves(one)]
    reached = [leaf for leaf in every if leaf.requires_grad]  # the state may hold an input, which no weight made
    gradients = iter(torch.autograd.grad(total, reached, allow_unused=True, materialize_grads=True))
    errors = [
        map_state(lambda leaf: next(gradients) if leaf.requires_grad else torch.zeros_like(leaf), one) for one in states
    ]
    return [map_state(Tensor.detach, one) for one in states], errors


def preservation(step: StepOf, symbols: Tensor, before: list[State], errors: list[State]) -> Tensor:
    """Omega, given the states before the steps that read symbols [T, B, ...], and dE/dx after each step."""
    with differentiable_twice():
        graph = in_parallel(step, symbols, before)
    above = [torch.cat(parts) for parts in zip(*map(leaves, errors), strict=True)]
    inputs, (outputs, given) = list(leaves(graph.before)), differentiable(leaves(graph.after), above)
    below = torch.autograd.grad(outputs, inputs, given, create_graph=True, allow_unused=True, materialize_grads=True)
    size = flat(tuple(above)).norm(dim=1)
    reached = size > 0
    ratio = flat(below)[reached].norm(dim=1) / size[reached]
    return (ratio - 1).square().sum() / symbols.shape[1]
