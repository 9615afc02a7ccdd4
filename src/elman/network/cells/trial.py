"""The cell of a plug-in is run once on a small example before a network is built from it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from elman.errors import UserError
from elman.network.cells.cell import Cell, LayerState, Weights

ROWS, STEPS, INPUTS, UNITS = 2, 2, 3, 4


def tried(cell: Cell, calling: Callable[[Callable[[], Any]], Any], what: str) -> None:
    """Raise UserError where the step or the scan of a cell does not give what it should.

    `calling` runs code of the plug-in and names it where that fails; `what` names the cell in messages.
    """
    with torch.random.fork_rng(devices=[]), torch.device("cpu"), torch.no_grad():
        w: Weights = calling(lambda: _weights(cell))
        shapes = calling(lambda: cell.shapes(INPUTS, UNITS))
        xs, state = _even(STEPS, ROWS, INPUTS), tuple(_even(ROWS, *shape) for shape in shapes)
        _require_state(calling(lambda: cell.step(w, xs[0], state)), shapes, f"{what}: its step")
        found = calling(lambda: cell.scan(w, xs, state))
        if not isinstance(found, tuple) or len(found) != 2 or found[0].shape != (STEPS, ROWS, UNITS):
            raise UserError(f"{what}: its scan must return outputs [T, B, H] and the state after the last step")
        _require_state(found[1], shapes, f"{what}: its scan")


def _require_state(state: Any, shapes: tuple[tuple[int, ...], ...], what: str) -> None:
    if not isinstance(state, tuple) or not all(isinstance(part, Tensor) for part in state):
        raise UserError(f"{what} must return a tuple of tensors, the state; it returned {type(state).__name__}")
    found: LayerState = state
    if len(found) != len(shapes):
        raise UserError(f"{what} returned {len(found)} tensors of state, but its cell has {len(shapes)}")
    for number, (part, shape) in enumerate(zip(found, shapes, strict=True)):
        if part.shape != (ROWS, *shape):
            raise UserError(
                f"{what} returned {list(part.shape)} as tensor {number} of its state, which is {[ROWS, *shape]} here"
            )
        if not bool(part.isfinite().all()):
            raise UserError(f"{what} gives values that are not finite for moderate inputs and weights")


def _weights(cell: Cell) -> Weights:
    rows, gates = len(cell.input_gates) * UNITS, len(cell.gates) * UNITS
    usual = {"weight_ih": (rows, INPUTS), "weight_hh": (gates, UNITS), "bias_ih": (rows,), "bias_hh": (gates,)}
    shapes = usual | {name: array.shape for name, array in cell.arrays(INPUTS, UNITS).items()}
    return Weights.of({name: _even(*shape) for name, shape in shapes.items()})


def _even(*shape: int) -> Tensor:
    count = int(torch.Size(shape).numel())
    return torch.linspace(-0.5, 0.5, count).view(shape)
