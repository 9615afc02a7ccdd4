"""From a recipe to a recurrent core: its cells, layers and connections."""

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
from elman.cores.bidirectional import Bidirectional
from elman.cores.connected import ConnectedStack, input_sizes
from elman.cores.core import RecurrentCore
from elman.cores.jordan import Jordan
from elman.cores.reservoir import Reservoir
from elman.cores.stack import Layer, Stack
from elman.cores.window import FeedForwardWindow
from elman.errors import UserError


def build_core(recipe: config.Core, input_size: int, num_outputs: int = 0, *, locked: bool) -> RecurrentCore:
    """The recurrent part of a model that predicts what follows.

    Args:
        recipe: the core.
        input_size: E.
        num_outputs: V, for a core that reads the model's own output.
        locked: dropout masks held over time.

    Raises:
        UserError: parts that do not fit together, or a core that reads the future.

    """
    match recipe:
        case config.FeedForward():
            return FeedForwardWindow(
                input_size,
                recipe.width,
                recipe.size,
                direct=recipe.direct,
                after=recipe.output_dropout,
                locked=locked,
            )
        case config.Stack():
            return build_stack(recipe, input_size, locked=locked)
        case config.Jordan():
            return Jordan(
                input_size,
                recipe.size,
                num_outputs,
                feedback=recipe.feedback,
                nonlinearity=recipe.nonlinearity,
                decay=recipe.decay,
                after=recipe.output_dropout,
                locked=locked,
            )
        case config.Reservoir():
            return Reservoir(
                input_size,
                recipe.size,
                radius=recipe.radius,
                leak=recipe.leak,
                density=recipe.density,
                input_scale=recipe.input_scale,
                bias_scale=recipe.bias_scale,
                after=recipe.output_dropout,
                locked=locked,
            )
        case config.Bidirectional():
            raise UserError(
                'model.core.kind = "bidirectional" reads the symbols that a language model is to predict; it is for'
                " encoders and taggers: here use stack, window, jordan or reservoir"
            )
        case _:
            assert_never(recipe)


def build_stack(recipe: config.Stack, input_size: int, *, locked: bool) -> Stack | ConnectedStack:
    """Layers of one cell."""
    connections, between, after = recipe.connections, recipe.between_dropout, recipe.output_dropout
    if connections == "melis" and len(set(recipe.sizes)) > 1:
        raise UserError(
            f'model.core.connections = "melis" adds the layers up, so model.core.sizes must be equal, but they are'
            f" {list(recipe.sizes)}"
        )
    layers = _layers(recipe, input_sizes(connections, input_size, recipe.sizes))
    if connections == "chain":
        return Stack(layers, between=between, after=after, locked=locked)
    return ConnectedStack(layers, connections, between=between, after=after, locked=locked)


def build_bidirectional(recipe: config.Bidirectional, input_size: int, *, locked: bool) -> Bidirectional:
    """Layers of one cell in both directions; each direction has the sizes of the recipe."""
    inputs = [input_size, *(2 * size for size in recipe.sizes[:-1])]
    return Bidirectional(
        _layers(recipe, inputs),
        _layers(recipe, inputs),
        between=recipe.between_dropout,
        after=recipe.output_dropout,
        locked=locked,
    )


def _layers(recipe: config.Stack | config.Bidirectional, inputs: list[int]) -> list[Layer]:
    cell = build_cell(recipe.cell)
    if recipe.recurrent_dropout and cell.masks is None:
        raise UserError(
            "model.core.recurrent_dropout masks the output in the products only, which the GRU's h' = z h + (1 - z) n"
            " does not allow; use model.core.weight_drop, or the cell lstm or elman"
        )
    return [
        Layer(
            cell,
            below,
            size,
            biases=recipe.biases,
            peepholes=isinstance(recipe.cell, config.LSTM) and recipe.cell.peepholes,
            weight_drop=recipe.weight_drop,
            recurrent_dropout=recipe.recurrent_dropout,
        )
        for below, size in zip(inputs, recipe.sizes, strict=True)
    ]


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
