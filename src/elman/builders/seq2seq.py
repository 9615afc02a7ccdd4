"""From a recipe to what reads the source of a sequence-to-sequence model."""

from itertools import pairwise

from elman import config
from elman.builders.core import build_layer
from elman.builders.encoder import build_encoder
from elman.cores.attentive import AttentiveCore
from elman.cores.core import RecurrentCore
from elman.cores.source import SourceReader
from elman.encoders.encoder import TokenEncoder
from elman.encoders.lookup import Lookup
from elman.errors import UserError
from elman.output.layer import OutputLayer
from elman.seq2seq import Bridge, SequenceToSequence


def build_seq2seq(
    recipe: config.Model, encoder: TokenEncoder, core: RecurrentCore, output: OutputLayer, num_source: int
) -> SequenceToSequence:
    """The whole model, given its decoder's parts.

    Raises:
        UserError: the source is read but not looked at, or parts do not fit together.

    """
    assert recipe.source is not None
    if not isinstance(core, AttentiveCore) or not isinstance(recipe.core, config.Attentive):
        raise UserError('model.source is read by nothing; set model.core.kind = "attentive", or leave model.source out')
    locked = recipe.masks == "locked"
    of_source = encoder
    if recipe.source.encoder is not None:
        of_source = build_encoder(recipe.source.encoder, num_source, locked=locked)
    elif not isinstance(encoder, Lookup) or len(encoder.weight) != num_source:
        raise UserError(
            "without model.source.encoder the source is read with the target's vectors, but the two have vocabularies"
            ' of their own; give one, such as encoder = { kind = "lookup", size = 200 }, or share the vocabulary'
        )
    reader = build_reader(recipe.source, of_source, locked=locked)
    return SequenceToSequence(encoder, core, output, reader, _bridge(recipe.source, recipe.core, reader))


def build_reader(recipe: config.Reader, encoder: TokenEncoder, *, locked: bool) -> SourceReader:
    """Layers in one direction or two."""
    directions = 2 if recipe.bidirectional else 1
    widths = [encoder.size, *(directions * size for size in recipe.stack.sizes)]
    layers = [
        [build_layer(recipe.stack, below, above // directions) for _ in range(directions)]
        for below, above in pairwise(widths)
    ]
    return SourceReader(
        encoder, layers, between=recipe.stack.between_dropout, after=recipe.stack.output_dropout, locked=locked
    )


def _bridge(source: config.Reader, core: config.Attentive, reader: SourceReader) -> Bridge | None:
    if type(source.stack.cell) is not type(core.stack.cell):
        raise UserError(
            "model.source.stack.cell and model.core.stack.cell are of two kinds, but the state of one begins the other;"
            " use one cell"
        )
    if source.start == "bridge":
        return Bridge(reader.sizes[-1], core.stack.sizes, 2 if isinstance(source.stack.cell, config.LSTM) else 1)
    if reader.sizes != core.stack.sizes:
        raise UserError(
            f'model.source.start = "copy" begins each layer of the decoder with the state of one of the reader\'s, but'
            f" they are {list(core.stack.sizes)} and {list(reader.sizes)} wide (both directions together); make them"
            ' equal, or set start = "bridge"'
        )
    return None
