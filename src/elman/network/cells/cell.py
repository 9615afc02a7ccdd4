"""A recurrent cell is its equations: a record whose fields are the keys of a recipe and whose `step` is the recurrence.

B rows, T steps, I inputs, H units. The weights of a layer have names: `weight_ih` [G H, I] and `weight_hh` [G H, H], in
G blocks of H rows, one per gate, `bias_ih` and `bias_hh` [G H] or None, and the further arrays of a cell by the names
of its paper.
"""

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman.config import plugins
from elman.config.initialisation import Init
from elman.config.parts import Part, tag_of
from elman.network.fast import matmul

LayerState: TypeAlias = tuple[Tensor, ...]
"""Tensors [B, ...], the first of which is the output h [B, H]; the others have the shapes of `Cell.shapes`."""

Shape: TypeAlias = tuple[int, ...]


class Weights(matmul.Arrays):
    """The arrays of one layer, by name.

    `mask` [B, H] multiplies the state in the products (see `Cell.masks`). `exact` is whether products of the inputs
    stay float32 where others are bf16 (`network/fast/precision.py`).
    """

    def __init__(
        self,
        weight_ih: Tensor,
        weight_hh: Tensor | None = None,
        bias_ih: Tensor | None = None,
        bias_hh: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        exact: bool = False,
        **arrays: Tensor,
    ) -> None:
        self.__dict__.update(weight_ih=weight_ih, weight_hh=weight_hh, bias_ih=bias_ih, bias_hh=bias_hh)
        self.__dict__.update(arrays, mask=mask, exact=exact)

    @classmethod
    def of(cls, arrays: Mapping[str, Tensor | None], *, exact: bool = False) -> "Weights":
        made = cls.__new__(cls)
        made.__dict__.update({"weight_hh": None, "bias_ih": None, "bias_hh": None, "mask": None}, **arrays, exact=exact)
        return made

    def tensors(self) -> dict[str, Tensor]:
        return {name: value for name, value in vars(self).items() if isinstance(value, Tensor) and name != "mask"}

    def replaced(self, **changes: Any) -> "Weights":
        return Weights(**(vars(self) | changes))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Tensor: ...


Step: TypeAlias = Callable[[Weights, Tensor, LayerState], LayerState]
"""(weights, x [B, I], state) -> state."""

Scan: TypeAlias = Callable[[Weights, Tensor, LayerState], tuple[Tensor, LayerState]]
"""(weights, xs [T, B, I], state) -> (outputs [T, B, H], state after the last step)."""


class Array(NamedTuple):
    """A further array of a cell: its shape, and how it begins.

    `start` is a rule, what fills it in place, or the group of parameters whose rule it follows. An array that is
    `recurrent` is filled with the recurrent weights, before the biases.
    """

    shape: Shape
    start: Init | Callable[[Tensor], object] | Literal["input", "bias"] = "input"
    recurrent: bool = False


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


class Controller(Part, frozen=True):
    """What reads the input and the memory of a Turing machine at every step: a cell, or a perceptron."""

    folder = "elman.network.cells"


class Cell(Controller, frozen=True):
    """One step of a recurrence.

    Attributes:
        masks: recurrent dropout masks the state before the step, `Weights.mask` in the products, or None: nothing
    """

    folder = "elman.network.cells"
    masks: ClassVar[Literal["state", "products"] | None] = "state"

    @property
    def name(self) -> str:
        """The equations, for messages and certificates: the kind, and the variant where these differ."""
        return tag_of(self)

    @property
    def gates(self) -> tuple[str, ...]:
        """The blocks of H rows of `weight_hh`, in order; empty: no product with the output before."""
        return ()

    @property
    def input_gates(self) -> tuple[str, ...]:
        """The blocks of H rows of `weight_ih`, in order."""
        return self.gates

    @property
    def candidate(self) -> str | None:
        """The gate that is the candidate of the new state."""
        return None

    @property
    def keeps(self) -> tuple[tuple[str, int], ...]:
        """The gates that keep the old state, each with 1 where it keeps it when open, or -1 when shut."""
        return ()

    @property
    def has_matrices(self) -> bool:
        """Whether `weight_hh` is a stack of matrices [H, H]."""
        return bool(self.gates)

    @property
    def linear(self) -> bool:
        """Whether the state enters a step linearly, with factors that `retention` gives."""
        return type(self).retention is not Cell.retention

    def arrays(self, inputs: int, size: int) -> Mapping[str, Array]:
        """The further arrays of a layer of `size` units that reads `inputs` numbers; UserError where sizes do not fit.

        One that is called `weight_hh` takes the place of the stack of matrices.
        """
        return {}

    def shapes(self, inputs: int, size: int) -> tuple[Shape, ...]:
        """The shapes of the tensors of the state, without the batch; the first is (size,)."""
        return ((size,),)

    def step(self, w: Weights, x: Tensor, state: LayerState) -> LayerState:
        """The state after one step with input x [B, I]."""
        raise NotImplementedError

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        """Outputs [T, B, H] over xs [T, B, I], T >= 1, and the state after them: the loop over `step`, or faster."""
        return unroll(self.step, w, xs, state)

    def retention(self, w: Weights) -> Retention | None:
        """The factors of a state that enters a step linearly; None where it does not."""
        return None


class Driven(Cell, frozen=True):
    """A cell that reads the input in products W x + b of its gates alone, which are formed for all steps at once."""

    def driven(self, w: Weights, drive: Tensor, state: LayerState) -> LayerState:
        """The state after one step with the drive W x + b [B, G H]."""
        raise NotImplementedError

    def step(self, w: Weights, x: Tensor, state: LayerState) -> LayerState:
        return self.driven(w, linear(x, w.weight_ih, w.bias_ih), state)

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        return unroll(self.driven, w, linear(xs, w.weight_ih, w.bias_ih), state)


class Gated(Driven, frozen=True):
    """A cell that reads x and h in sums W x + U h + b of its gates alone: each gate can have masks of its own."""

    def gated(self, w: Weights, z: Tensor, state: LayerState) -> LayerState:
        """The state after one step with the sums z = W x + U h + b [B, G H]."""
        raise NotImplementedError

    def driven(self, w: Weights, drive: Tensor, state: LayerState) -> LayerState:
        return self.gated(w, drive + linear(state[0], w.weight_hh, w.bias_hh), state)


def unroll(step: Step, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """Outputs [T, B, H] of `step` applied along xs [T, B, I], T >= 1, and the state after the last step.

    This plain loop is the ground truth of every `Cell.scan`.
    """
    outputs = []
    for x in xs:
        state = step(w, x, state)
        outputs.append(state[0])
    return torch.stack(outputs), state


def input_products(w: Weights, xs: Tensor, factor: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    """W x + b of all steps at once, [T, B, G H], differentiable once; or with another `factor` and its bias."""
    factor, bias = (w.weight_ih, w.bias_ih) if factor is None else (factor, bias)
    return matmul.linear(xs, factor, bias, exact=w.exact)


def block_of(w: Weights, block: int, size: int) -> Gate:
    """One block of `size` rows of the input product; without a bias its bias is zero."""
    rows = slice(block * size, (block + 1) * size)
    weight = w.weight_ih[rows]
    return Gate(weight, weight.new_zeros(size) if w.bias_ih is None else w.bias_ih[rows])


def checked(cell: Controller) -> Cell:
    """The cell of a recipe; raises UserError where a plug-in's cell is wrong on a small example."""
    assert isinstance(cell, Cell)
    if (what := plugins.name_of(cell)) is not None:
        from elman.network.cells.trial import tried

        tried(cell, functools.partial(plugins.calling, what), what)
    return cell
