"""A recurrent cell is its equations: a pure function of weights, input and state."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor


class Weights(NamedTuple):
    """The arrays of one recurrent layer; G gates are stacked on the first axis.

    Shapes: input [G*H, I], hidden [G*H, H], biases [G*H] or None, peephole [3, H] (i, f, o) or None.
    """

    input: Tensor
    hidden: Tensor
    input_bias: Tensor | None = None
    hidden_bias: Tensor | None = None
    peephole: Tensor | None = None


LayerState: TypeAlias = tuple[Tensor, ...]
"""Leaves [B, H]; the first is the output h."""

Step: TypeAlias = Callable[[Weights, Tensor, LayerState], LayerState]
"""(weights, x [B, I], state) -> state."""

Sequence: TypeAlias = Callable[[Weights, Tensor, LayerState], tuple[Tensor, LayerState]]
"""(weights, xs [T, B, I], state) -> (outputs [T, B, H], state after the last step)."""


class Cell(NamedTuple):
    """One step of a recurrence, and the fast function over many of them where there is one.

    Attributes:
        gates: how many blocks of H rows the weights have.
        slots: how many tensors [B, H] the state has.
        step: the equations.
        sequence: the same over time, computed faster; None means the plain loop.

    """

    gates: int
    slots: int
    step: Step
    sequence: Sequence | None = None


def unroll(step: Step, weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """Apply `step` along time, the plain way: the ground truth of every sequence function.

    Args:
        step: one step of a cell.
        weights: the layer's arrays.
        xs: inputs [T, B, I], T >= 1.
        state: the state before the first step.

    Returns:
        outputs [T, B, H] and the state after the last step.

    """
    outputs = []
    for x in xs:
        state = step(weights, x, state)
        outputs.append(state[0])
    return torch.stack(outputs), state
