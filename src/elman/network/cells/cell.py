"""A recurrent cell is its equations: a pure function of weights, input and state."""

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import linear


class Weights(NamedTuple):
    """The arrays of one recurrent layer; G gates are stacked on the first axis.

    Shapes: input [G*H, I], hidden [G*H, H], biases [G*H] or None, peephole [3, H] (i, f, o) or None. `extra` are the
    further matrices that a cell asks for; `mask` [B, H] multiplies the state in the products of a cell that says so.
    """

    input: Tensor
    hidden: Tensor
    input_bias: Tensor | None = None
    hidden_bias: Tensor | None = None
    peephole: Tensor | None = None
    extra: tuple[Tensor, ...] | None = None
    mask: Tensor | None = None


LayerState: TypeAlias = tuple[Tensor, ...]
"""Leaves [B, H]; the first is the output h."""

Step: TypeAlias = Callable[[Weights, Tensor, LayerState], LayerState]
"""(weights, x [B, I], state) -> state."""

Driven: TypeAlias = Callable[[Weights, Tensor, LayerState], LayerState]
"""As a step, but given the drive W x + b [B, G*H] in place of x: what is left when the input product is hoisted."""

Sequence: TypeAlias = Callable[[Weights, Tensor, LayerState], tuple[Tensor, LayerState]]
"""(weights, xs [T, B, I], state) -> (outputs [T, B, H], state after the last step)."""


Shapes: TypeAlias = Callable[[int, int], tuple[tuple[int, int], ...]]
"""(I, H) -> the shapes of a cell's extra matrices."""


class Cell(NamedTuple):
    """One step of a recurrence, and the fast function over many of them where there is one.

    Attributes:
        gates: how many blocks of H rows the recurrent weights have.
        slots: how many tensors [B, H] the state has.
        step: the equations.
        sequence: the same over time, computed faster; None means the plain loop.
        name: what messages and analyses know it by.
        candidate: the block that makes the candidate state.
        keeps: (block, sign) of the gates that decide what stays of the old state: 1 keeps when open, -1 when shut.
        input_gates: how many blocks the input weights have; None: as many as the recurrent ones.
        extra: the shapes of further matrices.
        masks: how recurrent dropout reaches it: h is masked before the step, `Weights.mask` is given, or not at all.

    """

    gates: int
    slots: int
    step: Step
    sequence: Sequence | None = None
    name: str = ""
    candidate: int = 0
    keeps: tuple[tuple[int, int], ...] = ()
    input_gates: int | None = None
    extra: Shapes | None = None
    masks: Literal["state", "products"] | None = "state"


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


def step_of(driven: Driven) -> Step:
    """One step: the input product, and the rest."""

    def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
        return driven(weights, linear(x, weights.input, weights.input_bias), state)

    return step


def hoist(driven: Driven) -> Sequence:
    """The same over time, with the input products of all steps as one."""

    def sequence(weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        outputs = []
        for drive in linear(xs, weights.input, weights.input_bias).unbind():
            state = driven(weights, drive, state)
            outputs.append(state[0])
        return torch.stack(outputs), state

    return sequence
