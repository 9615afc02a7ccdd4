"""From a recipe to what reads symbols and what remembers them: encoders, cells, cores."""

from collections.abc import Callable
from itertools import pairwise
from typing import assert_never

from elman import config
from elman.cells.cell import Cell
from elman.cells.elman import elman
from elman.cells.gru import GRU_RESET_AFTER, GRU_RESET_BEFORE
from elman.cells.lstm import LSTM, LSTM_1997, PEEPHOLE_LSTM
from elman.cores.attention import Additive, Attention, Dot, General
from elman.cores.attentive import AttentiveCore, fed_size
from elman.cores.core import RecurrentCore
from elman.cores.stack import Layer, Stack
from elman.cores.window import FeedForwardWindow
from elman.encoders.encoder import TokenEncoder
from elman.encoders.frames import Frames
from elman.encoders.lookup import Lookup
from elman.errors import UserError


def build_encoder(recipe: config.Lookup | config.Frames, num_inputs: int, *, locked: bool) -> TokenEncoder:
    """From symbols, or frames of notes, to vectors."""
    match recipe:
        case config.Lookup():
            return Lookup(
                num_inputs,
                recipe.size,
                dropout=recipe.dropout,
                word_dropout=recipe.word_dropout,
                locked=locked,
                scale=recipe.scale,
            )
        case config.Frames():
            return Frames(
                num_inputs, recipe.size, dropout=recipe.dropout, locked=locked, scale=recipe.scale, bias=recipe.bias
            )
        case _:
            assert_never(recipe)


def build_core(
    recipe: config.Stack | config.FeedForward | config.Attentive,
    input_size: int,
    *,
    locked: bool,
    source: config.Reader | None = None,
) -> RecurrentCore:
    """The recurrent part; with the core attentive `source` says what it looks at."""
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
        case config.Attentive():
            return build_attentive(recipe, input_size, source, locked=locked)
        case _:
            assert_never(recipe)


def build_stack(recipe: config.Stack, input_size: int, *, locked: bool) -> Stack:
    """Layers of one cell."""
    layers = [build_layer(recipe, below, size) for below, size in pairwise([input_size, *recipe.sizes])]
    return Stack(layers, between=recipe.between_dropout, after=recipe.output_dropout, locked=locked)


def build_layer(recipe: config.Stack, below: int, size: int) -> Layer:
    """One of its layers, of width `size` upon one of width `below`."""
    if recipe.recurrent_dropout and isinstance(recipe.cell, config.GRU):
        raise UserError(
            "model.core.recurrent_dropout masks the output in the products only, which the GRU's h' = z h + (1 - z) n"
            " does not allow; use model.core.weight_drop, or the cell lstm or elman"
        )
    return Layer(
        build_cell(recipe.cell),
        below,
        size,
        biases=recipe.biases,
        peepholes=isinstance(recipe.cell, config.LSTM) and recipe.cell.peepholes,
        weight_drop=recipe.weight_drop,
        recurrent_dropout=recipe.recurrent_dropout,
    )


def build_attentive(
    recipe: config.Attentive, input_size: int, source: config.Reader | None, *, locked: bool
) -> AttentiveCore:
    """A stack that looks at what `source` reads."""
    if source is None:
        raise UserError(
            'model.core.kind = "attentive" looks at a source, but there is no model.source; describe what reads it,'
            " such as source = { stack = { sizes = [200] } }"
        )
    memory = memory_size(source)
    size = recipe.size or recipe.stack.sizes[-1]
    stack = build_stack(recipe.stack, input_size + fed_size(recipe.feed, memory, size), locked=locked)
    query = recipe.stack.sizes[-1]
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


def build_cell(recipe: config.Elman | config.LSTM | config.GRU) -> Cell:
    """The equations."""
    match recipe:
        case config.Elman(nonlinearity=nonlinearity):
            return elman(nonlinearity)
        case config.LSTM(forget_gate=False, peepholes=True):
            raise UserError("model.core.cell: peepholes need the forget gate; set forget_gate = true")
        case config.LSTM(forget_gate=forget_gate, peepholes=peepholes):
            return PEEPHOLE_LSTM if peepholes else LSTM if forget_gate else LSTM_1997
        case config.GRU(reset=reset):
            return GRU_RESET_BEFORE if reset == "before" else GRU_RESET_AFTER
        case _:
            assert_never(recipe)
