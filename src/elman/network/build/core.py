"""From a recipe to a recurrent core: its layers and connections."""

from collections.abc import Callable
from typing import assert_never

from elman import config
from elman.errors import UserError
from elman.network.cells.cell import Cell
from elman.network.cells.elman import elman
from elman.network.cells.gru import GRU_RESET_AFTER, GRU_RESET_BEFORE
from elman.network.cells.highway import highway
from elman.network.cells.lstm import CAPPED_LSTM, COUPLED_LSTM, LSTM, LSTM_1997, PEEPHOLE_LSTM
from elman.network.cells.mogrifier import mogrifier
from elman.network.cells.partial_lstm import FORGET_RUNG, INPUT_RUNG
from elman.network.cores.attentive import Additive, Attention, AttentiveCore, Dot, General, fed_size
from elman.network.cores.bidirectional import Bidirectional
from elman.network.cores.core import RecurrentCore
from elman.network.cores.jordan import Jordan
from elman.network.cores.reservoir import Reservoir
from elman.network.cores.stack import ConnectedStack, Connections, Layer, Stack, input_sizes
from elman.network.cores.window import FeedForwardWindow


# FOLDED builders/cell.py: From a recipe to the equations of a cell.
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


# FOLDED builders/attentive.py: From a recipe to a decoder that looks at a source.
def layers_input(recipe: config.Attentive, input_size: int, source: config.Reader | None) -> int:
    """How wide is what the layers read: a symbol's vector, and what is fed beside it.

    Raises:
        UserError: there is no source, or the layers are of a kind that a decoder is not made of.

    """
    if source is None:
        raise UserError(
            'model.core.kind = "attentive" looks at a source, but there is no model.source; describe what reads it,'
            " such as source = { stack = { sizes = [200] } }"
        )
    for where, stack in (("model.source", source.stack), ("model.core", recipe.stack)):
        _require_plain(stack, where)
    return input_size + fed_size(recipe.feed, memory_size(source), attention_size(recipe))


def build_attentive(recipe: config.Attentive, stack: Stack, source: config.Reader | None) -> AttentiveCore:
    """A stack that looks at what `source` reads.

    Raises:
        UserError: widths that do not fit.

    """
    assert source is not None
    memory, size, query = memory_size(source), attention_size(recipe), recipe.stack.sizes[-1]
    if recipe.score == "dot" and query != memory:
        raise UserError(
            f'model.core.score = "dot" needs a decoder as wide as the memory, but the last of model.core.stack.sizes is'
            f" {query} and the source is read into {memory} (both directions together); make them equal, or use"
            ' "general"'
        )
    attention: dict[str, Callable[[], Attention]] = {
        "dot": Dot,
        "general": lambda: General(query, memory),
        "additive": lambda: Additive(query, memory, recipe.score_size or size),
    }
    return AttentiveCore(stack, attention[recipe.score](), memory, size, feed=recipe.feed, after=recipe.output_dropout)


def memory_size(source: config.Reader) -> int:
    """How wide the memory of a source is."""
    return (2 if source.bidirectional else 1) * source.stack.sizes[-1]


def attention_size(recipe: config.Attentive) -> int:
    """How wide the attention layer is."""
    return recipe.size or recipe.stack.sizes[-1]


def _require_plain(stack: config.Stack, where: str) -> None:
    cell = stack.cell
    plain = isinstance(cell, config.Elman | config.GRU) or (isinstance(cell, config.LSTM) and cell.input_gate == "free")
    if not plain:
        raise UserError(
            f"{where}.stack.cell: a source is read, and a target written, by the cells elman, gru and lstm with a free"
            " input gate; use one of them"
        )
    if stack.connections != "chain":
        raise UserError(
            f'{where}.stack.connections = "{stack.connections}": layers of a reader or a decoder stand in a chain; set'
            ' connections = "chain"'
        )


# TARGET
def build_core(
    recipe: config.Core,
    input_size: int,
    num_outputs: int = 0,
    *,
    locked: bool,
    source: config.Reader | None = None,
) -> RecurrentCore:
    """The recurrent part of a model that predicts what follows.

    Args:
        recipe: the core.
        input_size: E.
        num_outputs: V, for a core that reads the model's own output.
        locked: dropout masks held over time.
        source: what the core attentive looks at.

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
            if recipe.connections == "chain":
                return build_stack(recipe, input_size, locked=locked)
            return build_connected(recipe, recipe.connections, input_size, locked=locked)
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
        case config.Attentive():
            stack = build_stack(recipe.stack, layers_input(recipe, input_size, source), locked=locked)
            return build_attentive(recipe, stack, source)
        case _:
            assert_never(recipe)


def build_stack(recipe: config.Stack, input_size: int, *, locked: bool) -> Stack:
    """Layers of one cell in a chain, whatever `recipe.connections` says."""
    layers = _layers(recipe, [input_size, *recipe.sizes[:-1]])
    return Stack(layers, between=recipe.between_dropout, after=recipe.output_dropout, locked=locked)


def build_connected(recipe: config.Stack, connections: Connections, input_size: int, *, locked: bool) -> ConnectedStack:
    """Layers of one cell with connections that skip some."""
    if connections == "melis" and len(set(recipe.sizes)) > 1:
        raise UserError(
            f'model.core.connections = "melis" adds the layers up, so model.core.sizes must be equal, but they are'
            f" {list(recipe.sizes)}"
        )
    layers = _layers(recipe, input_sizes(connections, input_size, recipe.sizes))
    return ConnectedStack(
        layers, connections, between=recipe.between_dropout, after=recipe.output_dropout, locked=locked
    )


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
    return [build_layer(recipe, below, size) for below, size in zip(inputs, recipe.sizes, strict=True)]


def build_layer(recipe: config.Stack | config.Bidirectional, below: int, size: int) -> Layer:
    """One layer of width `size` that reads vectors of width `below`."""
    cell = build_cell(recipe.cell)
    if recipe.recurrent_dropout and cell.masks is None:
        raise UserError(
            "model.core.recurrent_dropout masks the output in the products only, which the GRU's h' = z h + (1 - z) n"
            " does not allow; use model.core.weight_drop, or the cell lstm or elman"
        )
    return Layer(
        cell,
        below,
        size,
        biases=recipe.biases,
        peepholes=isinstance(recipe.cell, config.LSTM) and recipe.cell.peepholes,
        weight_drop=recipe.weight_drop,
        recurrent_dropout=recipe.recurrent_dropout,
    )
