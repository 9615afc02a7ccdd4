"""A recurrent cell is its equations: a pure function of weights, input and state."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman import config
from elman.network import matmul
from elman.network.precision import products_in


class Weights(NamedTuple):
    """The arrays of one recurrent layer; G gates are stacked on the first axis.

    Shapes: input [G*H, I], hidden [G*H, H] (or that of `Cell.structured`; no rows without recurrent weights), biases
    [G*H] or None, peephole [3, H] (i, f, o) or None. `extra` holds the further arrays of a cell that has them; `mask`
    [B, H] multiplies the state in the products (see `Cell.masks`). `exact` is whether products of `input` and the
    inputs stay float32 where others are bf16 (`network/precision.py`).
    """

    input: Tensor
    hidden: Tensor
    input_bias: Tensor | None = None
    hidden_bias: Tensor | None = None
    peephole: Tensor | None = None
    extra: tuple[Tensor, ...] | None = None
    mask: Tensor | None = None
    exact: bool = False


LayerState: TypeAlias = tuple[Tensor, ...]
"""Tensors [B, ...], the first of which is the output h [B, H]; the others have the shapes of `Cell.shapes`."""

Step: TypeAlias = Callable[[Weights, Tensor, LayerState], LayerState]
"""(weights, x [B, I], state) -> state."""

Sequence: TypeAlias = Callable[[Weights, Tensor, LayerState], tuple[Tensor, LayerState]]
"""(weights, xs [T, B, I], state) -> (outputs [T, B, H], state after the last step)."""


class Structured(NamedTuple):
    """Recurrent weights that are no stack of matrices [H, H]: their shape for H units, and how they begin."""

    shape: Callable[[int], tuple[int, int]]
    fill: Callable[[Tensor], None]


class Array(NamedTuple):
    """A further array of a cell: its shape, and how it begins; None: by the rule of the input weights."""

    shape: tuple[int, ...]
    start: config.Init | Callable[[Tensor], object] | None = None


Arrays: TypeAlias = Callable[[int, int], tuple[Array, ...]]
"""(I, H) -> a cell's extra arrays."""

Shape: TypeAlias = tuple[int, ...]

Memory: TypeAlias = Callable[[int, int], tuple[Shape, ...]]
"""(I, H) -> the shapes of the tensors of a cell's state without the batch, the first of which is (H,)."""


class Gate(NamedTuple):
    """A product of one input with weights [R, I], and its bias [R], of a gate's sums."""

    weight: Tensor
    bias: Tensor


class Retention(NamedTuple):
    """What share of its old state a cell keeps, where a step multiplies it by factors that the inputs alone decide.

    `gates` are the products of the present input, of the one before and so on, whose sum the factors depend on; an
    input before the first counts as no product. `factor` maps the least and the greatest possible sums, [R] each, to
    the largest possible |factor| of each unit or head.
    """

    gates: tuple[Gate, ...]
    factor: Callable[[Tensor, Tensor], Tensor]


class Cell(NamedTuple):
    """One step of a recurrence, and its faster form over time (`sequence`; None means the plain loop).

    The recurrent weights have `gates` blocks of H rows (0: there are none), the input weights `input_gates` (None: as
    many), and the state has `slots` tensors, which are [B, H] unless `memory` gives their shapes. `candidate` is the
    block of the candidate state, `keeps` (block, sign) of each gate that keeps the old state: 1 when it is open, -1
    when it is shut. `extra` are further arrays. `structured`: the recurrent weights have a form of their own. Recurrent
    dropout masks h before the step, `Weights.mask` in the products, or nothing. `gated` is the step given
    z = W x + U h + b [B, G*H] in place of x, of cells that read x and h in such sums alone, so that each gate can have
    masks of its own. `retention`: the factors of a state that enters a step linearly.
    """

    gates: int
    slots: int
    step: Step
    sequence: Sequence | None = None
    name: str = ""
    candidate: int = 0
    keeps: tuple[tuple[int, int], ...] = ()
    input_gates: int | None = None
    extra: Arrays | None = None
    masks: Literal["state", "products"] | None = "state"
    peepholes: bool = False
    gated: Step | None = None
    structured: Structured | None = None
    memory: Memory | None = None
    retention: Callable[[Weights], Retention] | None = None

    def shapes(self, inputs: int, size: int) -> tuple[Shape, ...]:
        """The shapes of the tensors of the state, without the batch, of `size` units that read `inputs` numbers."""
        return ((size,),) * self.slots if self.memory is None else self.memory(inputs, size)

    @property
    def recurrent(self) -> bool:
        """Whether the output before is multiplied by weights, those of `Weights.hidden`."""
        return self.gates > 0 or self.structured is not None


def unroll(step: Step, weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """Outputs [T, B, H] of `step` applied along xs [T, B, I], T >= 1, and the state after the last step.

    This plain loop is the ground truth of every `Cell.sequence`.
    """
    outputs = []
    for x in xs:
        state = step(weights, x, state)
        outputs.append(state[0])
    return torch.stack(outputs), state


def step_of(driven: Step) -> Step:
    """One step: the input product, then `driven`, a step that is given the drive W x + b [B, G*H] in place of x."""
    return lambda weights, x, state: driven(weights, linear(x, weights.input, weights.input_bias), state)


def hoist(driven: Step) -> Sequence:
    """A sequence function that forms the input products of all steps at once; `driven` as in `step_of`."""
    return lambda weights, xs, state: unroll(driven, weights, linear(xs, weights.input, weights.input_bias), state)


def input_products(weights: Weights, xs: Tensor) -> Tensor:
    """W x + b of all steps at once, [T, B, G*H], differentiable once: for sequence functions."""
    return product_of_inputs(weights, xs, weights.input, weights.input_bias)


def product_of_inputs(weights: Weights, xs: Tensor, factor: Tensor, bias: Tensor | None = None) -> Tensor:
    """The same of another `factor`, for cells that multiply their inputs by several."""
    with products_in("float32") if weights.exact else nullcontext():
        return matmul.linear(xs, factor, bias)


def block_of(weights: Weights, block: int, size: int) -> Gate:
    """One block of `size` rows of the input product; without a bias its bias is zero."""
    rows = slice(block * size, (block + 1) * size)
    weight = weights.input[rows]
    return Gate(weight, weight.new_zeros(size) if weights.input_bias is None else weights.input_bias[rows])


def of_sums(gated: Step) -> Step:
    """The driven step (see `step_of`) of a step that is given the sums W x + U h + b in place of x."""
    return lambda weights, drive, state: gated(
        weights, drive + linear(state[0], weights.hidden, weights.hidden_bias), state
    )
