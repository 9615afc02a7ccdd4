"""A model as single steps in time, for the learning rules that treat each step on its own."""

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from elman.data.batches import Batch
from elman.network.cores.core import Trace
from elman.network.cores.layer import take_plain_steps
from elman.network.fast.matmul import differentiable_twice
from elman.network.model import LanguageModel
from elman.network.state import State, concatenate, leaves, map_state
from elman.objective.loss import Loss, Objective


class OneStep(nn.Module):
    """Encoder and core of a model as the function (input, state) -> (levels, state) of one step.

    The weights are shared with the model. The cells use their plain step, which can be differentiated any number of
    times and mapped over the batch, instead of the fast function over time.
    """

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        memo = {id(parameter): parameter for parameter in model.parameters()}
        self.encoder, self.core, output = copy.deepcopy((model.encoder, model.core, model.output), memo)
        self.output = output if self.core.hears else None  # its weights affect the states too
        take_plain_steps(self.core)

    def forward(self, symbols: Tensor, state: State) -> tuple[tuple[Tensor, ...], State]:
        """From symbols [B], or values [B, P], and a state to the levels, each [B, _], and the next state."""
        return self.advance(self.encoder(symbols.unsqueeze(0)), state)

    def advance(self, vectors: Tensor, state: State) -> tuple[tuple[Tensor, ...], State]:
        """The step itself, from encoded inputs [1, B, E]."""
        if self.output is None:
            trace, state = self.core(vectors, state)
        else:
            trace, state = self.core(vectors, state, self.output.log_probs)
        return tuple(level.squeeze(0) for level in trace.levels), state

    def learns_recurrence(self) -> bool:
        """Whether the Jacobian dx_{k+1}/dx_k of the state depends on trained weights.

        It does not in a reservoir, nor where the state holds past inputs alone, as in a window.
        """
        first = map_state(lambda leaf: leaf.detach().requires_grad_(), self.core.begin(1))
        before = list(leaves(first))
        with differentiable_twice():
            _, state = self.advance(before[0].new_zeros(1, 1, self.core.dims[0]), first)
        after = [leaf for leaf in leaves(state) if leaf.requires_grad]
        if not after:
            return False
        ones = [torch.ones_like(leaf) for leaf in after]
        products = torch.autograd.grad(after, before, ones, create_graph=True, allow_unused=True)
        return any(product is not None and product.requires_grad for product in products)

    @property
    def learnt(self) -> list[nn.Parameter]:
        """The trained parameters, each once."""
        return [parameter for parameter in self.parameters() if parameter.requires_grad]


StepOf: TypeAlias = Callable[[Tensor, State], tuple[tuple[Tensor, ...], State]]
"""From what B sequences read and their state to the levels, each [B, _], and the next state, as a `OneStep`."""


def learns(core: nn.Module) -> bool:
    """Whether a core has trained weights; no error passes through one that has none, a reservoir."""
    return any(parameter.requires_grad for parameter in core.parameters())


class Walk(NamedTuple):
    """A pass over a window without a graph: levels [T, B, _], the T states before the steps, and the one after."""

    levels: tuple[Tensor, ...]
    states: list[State]
    last: State


@torch.no_grad()
def walk(step: OneStep, symbols: Tensor, state: State) -> Walk:
    """Read symbols [T, B]."""
    states, levels = [], []
    for now in symbols:
        states.append(state)
        seen, state = step(now, state)
        levels.append(seen)
    return Walk(over_window(levels), states, state)


def over_window(levels: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """The levels of a window, each [T, B, _], of the levels of T single steps, each [B, _]."""
    return tuple(torch.stack(level) for level in zip(*levels, strict=True))


def error_at_levels(
    model: LanguageModel, objective: Objective, batch: Batch, levels: Sequence[Tensor]
) -> tuple[Loss, list[Tensor]]:
    """The loss of levels [T, B, _] and its gradient with respect to each.

    The gradients of everything else the loss depends on (output layer, penalties on weights) are added to `.grad`.
    """
    cut = tuple(level.detach().requires_grad_() for level in levels)
    loss = objective.of_trace(model, Trace(cut, cut, inputs=batch.inputs), batch)
    loss.objective.backward()
    gradients = [torch.zeros_like(level) if level.grad is None else level.grad for level in cut]
    return loss._replace(objective=loss.objective.detach()), gradients


class Parallel(NamedTuple):
    """All steps of a window as one graph of T*B single steps: states before them (its leaves), levels, states after."""

    before: State
    levels: tuple[Tensor, ...]
    after: State


def in_parallel(step: StepOf, symbols: Tensor, states: Sequence[State]) -> Parallel:
    """The graph of the steps that read symbols [T, B] from `states`."""
    before = map_state(lambda leaf: leaf.detach().requires_grad_(), concatenate(list(states)))
    levels, after = step(symbols.flatten(0, 1), before)
    return Parallel(before, levels, after)


def differentiable(outputs: Iterable[Tensor], errors: Iterable[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """The outputs of a graph that have a gradient, with their errors; others are copies of inputs, or constants."""
    pairs = [(output, error) for output, error in zip(outputs, errors, strict=True) if output.requires_grad]
    return [output for output, _ in pairs], [error for _, error in pairs]


def add_gradients(parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor | None]) -> None:
    """Add gradients to `.grad`; None adds nothing."""
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is not None:
            # In rows as the parameter has them; torch warns where more is added to a gradient in columns.
            parameter.grad = gradient.contiguous() if parameter.grad is None else parameter.grad + gradient


def flat(state: State) -> Tensor:
    """A state as one row per sequence, [B, n]."""
    return torch.cat([leaf.flatten(1) for leaf in leaves(state)], dim=1)
