"""Builds the network of a recipe: its parts in order, joined and initialised."""

from collections.abc import Sequence

from elman import config
from elman.errors import UserError
from elman.network.cores.core import build_core
from elman.network.cores.jordan import Jordan
from elman.network.encoders.encoder import build_encoder
from elman.network.model import LanguageModel
from elman.network.output.choice import Choice, build_choice
from elman.network.output.contexts import build_contexts
from elman.network.output.layer import OutputLayer
from elman.network.seq2seq import build_seq2seq


def build_model(
    recipe: config.Model,
    num_words: int,
    counts: Sequence[int] | None = None,
    words: Sequence[str] | None = None,
    num_source: int | None = None,
) -> LanguageModel:
    """The network of a recipe, initialised from torch's global random state; raises UserError where parts do not fit.

    `num_words` is V, symbols of the vocabulary, pitches of a frame, or values of a step. `counts` are the occurrences
    of each word, falling, for outputs that treat frequent words differently (by default Zipf's law is assumed), `words`
    the vocabulary for encoders that read spelling (by default words are spelled as their numbers). A source's
    vocabulary has `num_source` symbols, by default as many as the target's.
    """
    locked = recipe.masks == "locked"
    encoder = build_encoder(recipe.encoder, num_words, words, locked=locked)
    core = build_core(recipe.core, encoder.size, num_words, locked=locked, source=recipe.source)
    contexts = build_contexts(recipe.output, core.dims)
    output = OutputLayer(contexts, build_choice(recipe.output, contexts.size, encoder, num_words, counts))
    if isinstance(core, Jordan) and core.feedback == "output" and not isinstance(output.choice, Choice):
        raise UserError(
            'model.core.kind = "jordan" feeds the distribution of the next symbol back, and the distribution of'
            ' vectors cannot be listed; set model.core.feedback = "target"'
        )
    if recipe.source is None:
        model = LanguageModel(encoder, core, output)
    else:
        model = build_seq2seq(recipe, encoder, core, output, num_source or num_words)
    model.initialise(recipe.initialisation)
    return model


def tiny_model(num_words: int = 7, size: int = 4) -> LanguageModel:
    """A small LSTM language model for examples and tests."""
    return build_model(config.Model(encoder=config.Lookup(size=size), core=config.Stack(sizes=(size,))), num_words)
