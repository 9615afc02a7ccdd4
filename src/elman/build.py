"""From a recipe to objects: the only module that knows how the parts are wired; `builders` makes each of them."""

from collections.abc import Sequence
from typing import assert_never

from elman import config
from elman.builders.choice import build_choice
from elman.builders.core import build_core
from elman.builders.encoder import build_encoder
from elman.builders.seq2seq import build_seq2seq
from elman.cores.jordan import Jordan
from elman.errors import UserError
from elman.initialisation import initialise
from elman.model import LanguageModel
from elman.objective.loss import Objective
from elman.objective.penalties import (
    ActivationPenalty,
    BalancePenalty,
    Penalty,
    TemporalActivationPenalty,
)
from elman.objective.stability import FixedPointPenalty, IncrementalPenalty, WeightPenalty
from elman.output.choice import Choice
from elman.output.contexts import ContextLayer, Mixture, Single
from elman.output.layer import OutputLayer


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


def build_objective(recipe: config.Training) -> Objective:
    """Negative log-likelihood and the penalties with a weight."""
    weights = recipe.penalties
    penalties: list[Penalty] = []
    if weights.ar:
        penalties.append(ActivationPenalty(weights.ar))
    if weights.tar:
        penalties.append(TemporalActivationPenalty(weights.tar))
    if weights.balance:
        penalties.append(BalancePenalty(weights.balance, columns=weights.balance_form == "columns"))
    of_weights: list[WeightPenalty] = []
    if weights.stability:
        trained_for = IncrementalPenalty if weights.stability_tier == 2 else FixedPointPenalty
        of_weights.append(trained_for(weights.stability, weights.stability_margin))
    return Objective(penalties, recipe.loss, of_weights)


def tiny_model(num_words: int = 7, size: int = 4) -> LanguageModel:
    """A small LSTM language model for examples and tests."""
    return build_model(config.Model(encoder=config.Lookup(size=size), core=config.Stack(sizes=(size,))), num_words)
