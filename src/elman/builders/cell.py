"""From a recipe to the equations of a cell."""

from typing import assert_never

from elman import config
from elman.cells.cell import Cell
from elman.cells.coupled import CAPPED_LSTM, COUPLED_LSTM
from elman.cells.elman import elman
from elman.cells.gru import GRU_RESET_AFTER, GRU_RESET_BEFORE
from elman.cells.highway import highway
from elman.cells.ladder import FORGET_RUNG, INPUT_RUNG
from elman.cells.lstm import LSTM, LSTM_1997, PEEPHOLE_LSTM
from elman.cells.mogrifier import mogrifier
from elman.errors import UserError


def build_cell(recipe: config.Cell) -> Cell:
    """The equations.

    Raises:
        UserError: gates that do not go together.

    """
    match recipe:
        case config.Elman(nonlinearity=nonlinearity):
            return elman(nonlinearity)
        case config.LSTM():
            return _lstm(recipe)
        case config.GRU(reset=reset):
            return GRU_RESET_BEFORE if reset == "before" else GRU_RESET_AFTER
        case config.Highway(depth=depth, coupled=coupled):
            return highway(depth, coupled=coupled)
        case config.Mogrifier(rounds=rounds, rank=rank, input_gate=input_gate):
            return mogrifier(rounds, rank, (LSTM if input_gate == "free" else CAPPED_LSTM).step)
        case config.Ladder(rung=rung):
            return {"forget": FORGET_RUNG, "input": INPUT_RUNG, "output": LSTM}[rung]
        case _:
            assert_never(recipe)


def _lstm(recipe: config.LSTM) -> Cell:
    if not recipe.forget_gate and recipe.peepholes:
        raise UserError("model.core.cell: peepholes need the forget gate; set forget_gate = true")
    if recipe.input_gate != "free" and (recipe.peepholes or not recipe.forget_gate):
        raise UserError(
            f'model.core.cell: input_gate = "{recipe.input_gate}" is for the LSTM with a forget gate and no peepholes;'
            ' set input_gate = "free", or forget_gate = true and peepholes = false'
        )
    if recipe.input_gate != "free":
        return COUPLED_LSTM if recipe.input_gate == "coupled" else CAPPED_LSTM
    if recipe.peepholes:
        return PEEPHOLE_LSTM
    return LSTM if recipe.forget_gate else LSTM_1997
