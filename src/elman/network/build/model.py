"""From a recipe to objects: the only module that knows how the parts are wired; `builders` makes each of them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import assert_never

from elman import config
from elman.errors import UserError
from elman.network.build.choice import build_choice
from elman.network.build.core import build_core, build_layer
from elman.network.cores.attentive import AttentiveCore
from elman.network.cores.core import RecurrentCore
from elman.network.cores.jordan import Jordan
from elman.network.cores.source import SourceReader
from elman.network.encoders.characters import Characters
from elman.network.encoders.encoder import Frames, TokenEncoder
from elman.network.encoders.lookup import Lookup
from elman.network.initialisation import initialise
from elman.network.model import LanguageModel
from elman.network.output.choice import Choice
from elman.network.output.contexts import ContextLayer, Mixture, Single
from elman.network.output.layer import OutputLayer
from elman.network.seq2seq import Bridge, SequenceToSequence


# FOLDED builders/seq2seq.py: From a recipe to what reads the source of a sequence-to-sequence model.
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


# FOLDED builders/encoder.py: From a recipe to an encoder: what turns symbols, words by their spelling, or frames of notes into vectors.
def build_encoder(
    recipe: config.Lookup | config.Characters | config.Frames,
    num_inputs: int,
    words: Sequence[str] | None = None,
    *,
    locked: bool,
) -> TokenEncoder:
    """From symbols, or frames of notes, to vectors; `words` as in `build_model`.

    Raises:
        UserError: parts that do not fit together.

    """
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
        case config.Characters():
            if len(recipe.widths) != len(recipe.filters):
                raise UserError(
                    f"model.encoder.filters has {len(recipe.filters)} numbers and model.encoder.widths"
                    f" {len(recipe.widths)}; give one number of filters for each width"
                )
            return Characters(
                [str(number) for number in range(num_inputs)] if words is None else words,
                recipe.size,
                recipe.widths,
                recipe.filters,
                highways=recipe.highways,
                dropout=recipe.dropout,
                locked=locked,
            )
        case config.Frames():
            return Frames(
                num_inputs, recipe.size, dropout=recipe.dropout, locked=locked, scale=recipe.scale, bias=recipe.bias
            )
        case _:
            assert_never(recipe)


# TARGET
def build_model(
    recipe: config.Model,
    num_words: int,
    counts: Sequence[int] | None = None,
    words: Sequence[str] | None = None,
    num_source: int | None = None,
) -> LanguageModel:
    """The network of a recipe, initialised from torch's global random state.

    Args:
        recipe: the parts.
        num_words: V, symbols of the vocabulary, or pitches of a frame.
        counts: how often each word was seen, falling, for outputs that treat frequent words otherwise; without them
            the frequencies are taken to follow Zipf's law.
        words: the vocabulary, for encoders that read spelling; without it words are spelled as their numbers.
        num_source: symbols of the source's vocabulary, where there is a source; else as many as the target's.

    Raises:
        UserError: parts that do not fit together.

    """
    encoder = build_encoder(recipe.encoder, num_words, words, locked=recipe.masks == "locked")
    core = build_core(recipe.core, encoder.size, num_words, locked=recipe.masks == "locked", source=recipe.source)
    contexts = build_contexts(recipe.output, core.dims)
    choice = build_choice(recipe.output, contexts.size, encoder, num_words, counts)
    output = OutputLayer(contexts, choice)
    if recipe.source is None:
        model = LanguageModel(encoder, core, output)
    else:
        model = build_seq2seq(recipe, encoder, core, output, num_source or num_words)
    if isinstance(core, Jordan):
        _let_listen(core, model.output)
    initialise(model, recipe.initialisation)
    return model


def _let_listen(core: Jordan, output: OutputLayer) -> None:
    if core.feedback == "output" and not isinstance(output.choice, Choice):
        raise UserError(
            'model.core.kind = "jordan" feeds the distribution of the next symbol back, and of frames of notes there is'
            ' none to list; set model.core.feedback = "target"'
        )
    core.listen(output.log_probs)


def build_contexts(recipe: config.Output, dims: Sequence[int]) -> ContextLayer:
    """Single, MoS or DOC."""
    match recipe.contexts:
        case config.Single():
            return Single(dims[-1])
        case config.Mixture() as mixture:
            for level in mixture.heads:
                if not 0 <= level < len(dims):
                    raise UserError(
                        f"model.output.contexts.heads names level {level}, but the levels are 0 (the encoder) to"
                        f" {len(dims) - 1} (the last layer)"
                    )
            if not mixture.heads:
                raise UserError("model.output.contexts.heads is empty; give a level, such as heads = { 3 = 15 }")
            prior = recipe.activation if mixture.prior == "same" else "softmax"
            return Mixture(
                dims,
                mixture.heads,
                mixture.size,
                linear=mixture.linear,
                drop=mixture.dropout,
                shared_mask=mixture.shared_mask,
                prior=prior,
            )
        case _:
            assert_never(recipe.contexts)


def tiny_model(num_words: int = 7, size: int = 4) -> LanguageModel:
    """A small LSTM language model for examples and tests."""
    return build_model(config.Model(encoder=config.Lookup(size=size), core=config.Stack(sizes=(size,))), num_words)
