"""The cell of a recipe; that of a plug-in is run once on a small example before a network is built from it."""

import functools
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

import torch
from torch import Tensor

from elman import config
from elman.config import plugins
from elman.errors import UserError
from elman.network.cells.cell import Cell, LayerState, Weights

ROWS, STEPS, INPUTS, UNITS = 2, 2, 3, 4


def build_cell(record: config.Cell) -> Cell:
    """The equations of a recipe's cell; raises UserError where the record asks for gates that do not go together.

    That of a plug-in is tried on a small example; raises UserError where it is wrong there.
    """
    if (what := plugins.name_of(record)) is None:
        return resolve_name(record.builder)(record)
    calling = functools.partial(plugins.calling, what)
    return tried(calling(lambda: resolve_name(record.builder)(record)), calling, what)


def tried(cell: Any, calling: Callable[[Callable[[], Any]], Any], what: str) -> Cell:
    """The cell, if it is one whose step and sequence give what they should; raises UserError otherwise.

    `calling` runs code of the plug-in and names it where that fails; `what` names the cell in messages.
    """
    if not isinstance(cell, Cell):
        raise UserError(f"{what}: its builder returned {cell!r:.60}, not an elman.network.cells.cell.Cell")
    with torch.random.fork_rng(devices=[]), torch.device("cpu"), torch.no_grad():
        weights: Weights = calling(lambda: _weights(cell))
        xs, state = _even(STEPS, ROWS, INPUTS), tuple(_even(ROWS, *shape) for shape in cell.shapes(INPUTS, UNITS))
        _require_state(calling(lambda: cell.step(weights, xs[0], state)), cell, f"{what}: its step")
        if (sequence := cell.sequence) is not None:
            found = calling(lambda: sequence(weights, xs, state))
            if not isinstance(found, tuple) or len(found) != 2 or found[0].shape != (STEPS, ROWS, UNITS):
                raise UserError(f"{what}: its sequence must return outputs [T, B, H] and the state after the last step")
            _require_state(found[1], cell, f"{what}: its sequence")
    return cell


def _require_state(state: Any, cell: Cell, what: str) -> None:
    if not isinstance(state, tuple) or not all(isinstance(part, Tensor) for part in state):
        raise UserError(f"{what} must return a tuple of tensors, the state; it returned {type(state).__name__}")
    found: LayerState = state
    shapes = cell.shapes(INPUTS, UNITS)
    if len(found) != len(shapes):
        raise UserError(f"{what} returned {len(found)} tensors of state, but its Cell has {len(shapes)}")
    for number, (part, shape) in enumerate(zip(found, shapes, strict=True)):
        if part.shape != (ROWS, *shape):
            raise UserError(
                f"{what} returned {list(part.shape)} as tensor {number} of its state, which is {[ROWS, *shape]} here"
            )
        if not bool(part.isfinite().all()):
            raise UserError(f"{what} gives values that are not finite for moderate inputs and weights")


def _weights(cell: Cell) -> Weights:
    """Weights of a layer of UNITS units, with both biases."""
    gates = cell.gates * UNITS
    rows = (cell.gates if cell.input_gates is None else cell.input_gates) * UNITS
    if cell.structured is None:
        hidden = _even(gates, UNITS)
    else:
        hidden = torch.empty(cell.structured.shape(UNITS))
        cell.structured.fill(hidden)
    extra = None if cell.extra is None else tuple(_even(*array.shape) for array in cell.extra(INPUTS, UNITS))
    peephole = _even(3, UNITS) if cell.peepholes else None
    return Weights(_even(rows, INPUTS), hidden, _even(rows), _even(gates), peephole, extra)


def _even(*shape: int) -> Tensor:
    """Numbers from -1/2 to 1/2, without a draw."""
    count = int(torch.Size(shape).numel())
    return torch.linspace(-0.5, 0.5, count).view(shape)
