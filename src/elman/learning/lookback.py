"""BPTT(h): the error of every step goes back h steps and no further (Williams & Peng 1990; Werbos 1990).

Windows of h steps would give the last step of a window a look-back of h and the first of 1; here the look-backs
overlap, and each step has its own.
"""

import torch
from torch import Tensor

from elman.data.windows import Batch
from elman.learning.learner import Learner
from elman.learning.steps import OneStep, add_gradients, error_at_levels, in_parallel, walk
from elman.model import LanguageModel
from elman.objective.loss import Loss, Objective
from elman.state import State, leaves


class Lookback(Learner):
    """Truncated BPTT with overlapping look-back; `steps` = 1 is the rule of Elman's and Jordan's networks.

    Given the states, single steps do not depend on each other, so all T steps of a window are one graph of T*B rows,
    and errors go back by one step at a time in all of them at once: h backward passes, where a network of n units
    takes O(h n^2) operations a step. No look-back passes the beginning of the window.

    """

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def __call__(self, model: LanguageModel, objective: Objective, batch: Batch, state: State) -> tuple[Loss, State]:
        """Learn from one window."""
        step = OneStep(model)
        seen = walk(step, batch.inputs, state)
        loss, errors = error_at_levels(model, objective, batch, seen.levels)
        graph = in_parallel(step, batch.inputs, seen.states)
        parameters, before, rows = step.learnt, list(leaves(graph.before)), batch.inputs.shape[1]
        outputs: list[Tensor] = [level for level in graph.levels if level.requires_grad]
        back = [e.flatten(0, 1) for e, level in zip(errors, graph.levels, strict=True) if level.requires_grad]
        depth = min(self.steps, len(batch.inputs))
        for lag in range(depth):
            if not any(output.requires_grad for output in outputs):
                break  # a reservoir: no error passes it
            found = torch.autograd.grad(
                outputs, [*parameters, *before], back, retain_graph=lag + 1 < depth, allow_unused=True
            )
            add_gradients(parameters, found[: len(parameters)])
            earlier = [
                torch.zeros_like(leaf) if gradient is None else gradient
                for leaf, gradient in zip(before, found[len(parameters) :], strict=True)
            ]
            outputs = list(leaves(graph.after))
            back = [torch.cat([error[rows:], torch.zeros_like(error[:rows])]) for error in earlier]
        return loss, seen.last
