"""A model as single steps in time: what the rules that look at each step work with."""

import copy
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from elman.data.windows import Batch
from elman.network.cores.core import Trace
from elman.network.cores.jordan import Jordan
from elman.network.cores.stack import Layer
from elman.network.model import LanguageModel
from elman.network.state import State, concatenate, leaves, map_state
from elman.objective.loss import Loss, Objective


class OneStep(nn.Module):
    """Encoder and core of a model, as the function (what is read, state) -> (levels, state) of one step.

    The weights are the model's own; the cells take their plain step, which can be differentiated any number of times
    and mapped over the batch, and not the fast function over time.
    """

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        memo = {id(parameter): parameter for parameter in model.parameters()}
        self.encoder, self.core, output = copy.deepcopy((model.encoder, model.core, model.output), memo)
        listens = isinstance(self.core, Jordan) and self.core.feedback == "output"
        self.output = output if listens else None  # its weights affect the states too
        for module in self.core.modules():
            if isinstance(module, Layer):
                module.cell = module.cell._replace(sequence=None)

    def forward(self, symbols: Tensor, state: State) -> tuple[tuple[Tensor, ...], State]:
        """From symbols [B], or values [B, P], and a state to the levels, each [B, _], and the next state."""
        vectors = self.encoder(symbols.unsqueeze(0))
        if self.output is None:
            trace, state = self.core(vectors, state)
        else:
            trace, state = self.core(vectors, state, self.output.log_probs)
        return tuple(level.squeeze(0) for level in trace.levels), state

    @property
    def learnt(self) -> list[nn.Parameter]:
        """What learns here, each parameter once."""
        return [parameter for parameter in self.parameters() if parameter.requires_grad]


def learns(core: nn.Module) -> bool:
    """Whether it has weights that learn; no error passes through one that has none, a reservoir."""
    return any(parameter.requires_grad for parameter in core.parameters())


class Walk(NamedTuple):
    """What a model did over a window, without a graph.

    Attributes:
        levels: of every step, [T, B, _].
        states: before every step, T of them.
        last: the state after the last.

    """

    levels: tuple[Tensor, ...]
    states: list[State]
    last: State


@torch.no_grad()
def walk(step: OneStep, symbols: Tensor, state: State) -> Walk:
    """Go through symbols [T, B]."""
    states, levels = [], []
    for now in symbols:
        states.append(state)
        seen, state = step(now, state)
        levels.append(seen)
    return Walk(tuple(torch.stack(level) for level in zip(*levels, strict=True)), states, state)


def error_at_levels(
    model: LanguageModel, objective: Objective, batch: Batch, levels: Sequence[Tensor]
) -> tuple[Loss, list[Tensor]]:
    """The loss of levels [T, B, _] and its gradient with respect to each, what is above them taken along.

    What the loss depends on beside the levels (output layer, penalties of weights) has its gradient added to `.grad`.
    """
    cut = tuple(level.detach().requires_grad_() for level in levels)
    loss = objective.of_trace(model, Trace(cut, cut), batch)
    loss.objective.backward()
    gradients = [torch.zeros_like(level) if level.grad is None else level.grad for level in cut]
    return loss._replace(objective=loss.objective.detach()), gradients


class Parallel(NamedTuple):
    """All steps of a window as one batch of T*B single steps, each from the state that it had: one graph.

    Attributes:
        before: the states before the steps, leaves of the graph [T*B, ...].
        levels: [T*B, _].
        after: the states after the steps.

    """

    before: State
    levels: tuple[Tensor, ...]
    after: State


def in_parallel(step: OneStep, symbols: Tensor, states: Sequence[State]) -> Parallel:
    """The graph of the steps that read symbols [T, B] in `states`."""
    before = map_state(lambda leaf: leaf.detach().requires_grad_(), concatenate(list(states)))
    levels, after = step(symbols.flatten(0, 1), before)
    return Parallel(before, levels, after)


def add_gradients(parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor | None]) -> None:
    """Add to `.grad`."""
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is not None:
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient


def flat(state: State) -> Tensor:
    """A state as one row for each sequence, [B, n]."""
    return torch.cat([leaf.flatten(1) for leaf in leaves(state)], dim=1)
