"""From a recipe to a decoder that looks at a source."""

from collections.abc import Callable

from elman import config
from elman.cores.attention import Additive, Attention, Dot, General
from elman.cores.attentive import AttentiveCore, fed_size
from elman.cores.stack import Stack
from elman.errors import UserError


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
