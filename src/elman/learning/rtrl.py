"""Real-time recurrent learning (Williams & Zipser 1989): the gradient carried forward with the state.

With S the state [n] and theta the weights [p] of encoder and core, the influence P_t = dS_t / dtheta obeys

    P_t = J_t P_{t-1} + d step(S_{t-1}, x_t; theta) / dtheta,        J_t = dS_t / dS_{t-1}

and dL_t / dtheta is the gradient of one step plus (dL_t / dS_{t-1}) P_{t-1}. Nothing of the past is kept, so the
weights may change at any step; held fixed, the gradients add up to BPTT without truncation.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call, jacrev, vmap

from elman.data.batches import Batch
from elman.errors import UserError
from elman.learning.bptt import Learner
from elman.learning.single_step import (
    OneStep,
    add_gradients,
    differentiable,
    error_at_levels,
    flat,
    in_parallel,
    learns,
    walk,
)
from elman.network.encoders.characters import CharactersEncoder
from elman.network.model import LanguageModel
from elman.network.state import State, concatenate, leaves, rebuild, select
from elman.objective.loss import Loss, Objective

TOGETHER = 2**21
"""Entries of single-step Jacobians computed at a time: 8 MB in float32."""


class Cost(NamedTuple):
    """Bytes in total, and multiply-adds of J P per step, O(n^4) for n fully connected units."""

    bytes: int
    multiply_adds: int


def cost(model: LanguageModel, batch: int) -> Cost:
    """The cost for `batch` sequences: the influence, its successor and the Jacobian of one step."""
    units, weights = flat(model.begin(1)).shape[1], num_influential(model)
    return Cost(3 * batch * units * weights * next(model.parameters()).element_size(), batch * units * units * weights)


def num_influential(model: LanguageModel) -> int:
    """p, the number of weights the states depend on; 0 where no error passes the core, as in a reservoir."""
    return sum(parameter.numel() for parameter in OneStep(model).learnt) if learns(model.core) else 0


class RTRL(Learner):
    """Exact gradients forward in time, for small networks of any core without dropout.

    The window length only sets how often the weights change. The influence is carried over windows and never truncated;
    as in the paper, it is exact while the weights do not change. It may take at most `max_gb` GB.
    """

    def __init__(self, max_gb: float = 2.0) -> None:
        self.max_gb = max_gb

    def check(self, model: LanguageModel, batch: int) -> None:
        """Raise UserError where words are spelled, or the influence does not fit into `max_gb`."""
        if isinstance(model.encoder, CharactersEncoder):
            raise UserError(
                'training.rule.kind = "rtrl" takes the derivatives of single steps by vectors of words; use'
                ' model.encoder.kind = "lookup", or the rule "bptt"'
            )
        needed = cost(model, batch)
        if needed.bytes > 1e9 * self.max_gb:
            raise UserError(
                f'training.rule.kind = "rtrl" would need {needed.bytes / 1e9:.3g} GB and'
                f" {needed.multiply_adds:.2g} multiply-adds per step for this model and {batch} columns, more than the"
                f" {self.max_gb:g} GB of training.rule.max_gb; make the network smaller, lower training.batch_size, or"
                ' use kind = "bptt"'
            )

    def begin(self, model: LanguageModel, batch: int) -> State:
        """The model's state, and an influence [B, n, p] of zeros."""
        state = model.begin(batch)
        influence = next(leaves(state)).new_zeros(batch, flat(state).shape[1], num_influential(model))
        return state, influence

    def model_state(self, state: State) -> State:
        return state[0]

    def __call__(self, model: LanguageModel, objective: Objective, batch: Batch, state: State) -> tuple[Loss, State]:
        before, influence = state
        assert isinstance(influence, torch.Tensor)
        step = OneStep(model)
        seen = walk(step, batch.inputs, before)
        loss, errors = error_at_levels(model, objective, batch, seen.levels)
        parameters = step.learnt
        direct, to_states = _one_step_back(step, batch.inputs, seen.states, errors)
        add_gradients(parameters, direct)
        if not influence.numel():
            return loss, (seen.last, influence)
        total = influence.new_zeros(influence.shape[2])
        for own, jacobian, to_state in _steps(step, batch.inputs, seen.states, to_states):
            total += to_state.flatten() @ influence.flatten(0, 1)
            influence = torch.baddbmm(own, jacobian, influence)
        sizes = [parameter.numel() for parameter in parameters]
        parts = zip(total.split(sizes), parameters, strict=True)
        add_gradients(parameters, [part.view_as(parameter) for part, parameter in parts])
        return loss, (seen.last, influence)


def _one_step_back(
    step: OneStep, symbols: Tensor, states: list[State], errors: list[Tensor]
) -> tuple[Sequence[Tensor], Tensor]:
    """The gradient of the levels' errors through one step: with respect to the weights, and to the states [T, B, n]."""
    graph = in_parallel(step, symbols, states)
    levels, above = differentiable(graph.levels, [error.flatten(0, 1) for error in errors])
    sources = [*step.learnt, *leaves(graph.before)]
    found: Sequence[Tensor] = [torch.zeros_like(source) for source in sources]
    if levels:
        found = torch.autograd.grad(levels, sources, above, materialize_grads=True)
    count = len(step.learnt)
    return found[:count], flat(tuple(found[count:])).unflatten(0, symbols.shape[:2])


def _steps(
    step: OneStep, symbols: Tensor, states: list[State], to_states: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """For each step its direct dS_t / dtheta [B, n, p], dS_t / dS_{t-1} [B, n, n], and the error at its state [B, n].

    Given the states, single steps do not depend on each other, and several are computed together.
    """
    units, weights = to_states.shape[2], sum(parameter.numel() for parameter in step.learnt)
    together = max(1, TOGETHER // (symbols.shape[1] * units * weights))
    for start in range(0, len(symbols), together):
        group = slice(start, start + together)
        of_state, own = _jacobians(step, symbols[group].flatten(0, 1), concatenate(states[group]))
        shape = (-1, symbols.shape[1])
        yield from zip(own.unflatten(0, shape), of_state.unflatten(0, shape), to_states[group], strict=True)


def _jacobians(step: OneStep, symbols: Tensor, state: State) -> tuple[Tensor, Tensor]:
    """dS_t / dS_{t-1} [B, n, n] and the direct dS_t / dtheta [B, n, p]."""
    weights = {name: value.detach() for name, value in step.named_parameters() if value.requires_grad}

    def after(weights: dict[str, Tensor], row: State, symbol: Tensor) -> Tensor:
        one = rebuild(row, (leaf.unsqueeze(0) for leaf in leaves(row)))
        _, new = functional_call(step, weights, (symbol.unsqueeze(0), one))
        return flat(new).squeeze(0)

    of_weights, of_state = vmap(jacrev(after, argnums=(0, 1)), in_dims=(None, 0, 0))(weights, state, symbols)
    units = len(flat(select(state, slice(0, 1)))[0])
    shape = (len(symbols), units, -1)
    own = torch.cat([value.reshape(shape) for value in of_weights.values()], dim=2)
    return torch.cat([leaf.reshape(shape) for leaf in leaves(of_state)], dim=2), own
