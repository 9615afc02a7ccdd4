"""From a recipe to a recurrent core: its layers and connections."""

from typing import assert_never

from elman import config
from elman.builders.attentive import build_attentive, layers_input
from elman.builders.cell import build_cell
from elman.cores.bidirectional import Bidirectional
from elman.cores.connected import ConnectedStack, Connections, input_sizes
from elman.cores.core import RecurrentCore
from elman.cores.jordan import Jordan
from elman.cores.reservoir import Reservoir
from elman.cores.stack import Layer, Stack
from elman.cores.window import FeedForwardWindow
from elman.errors import UserError


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
