"""From a recipe to a choice: how a word, or a frame of notes, is chosen given a context."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import assert_never

import numpy as np
import torch
from torch import nn

from elman import config
from elman.errors import UserError
from elman.network.encoders.encoder import Frames, TokenEncoder
from elman.network.encoders.lookup import Lookup
from elman.network.output import adaptive
from elman.network.output.activation import Monotone
from elman.network.output.adaptive import Adaptive
from elman.network.output.choice import Conditional, zipf
from elman.network.output.flat import Flat
from elman.network.output.mixtape import Mixtape
from elman.network.output.notes import NADE, Bernoulli
from elman.network.output.rare_class import RareClass
from elman.network.output.tree import Tree


def build_choice(
    recipe: config.Output,
    size: int,
    encoder: TokenEncoder,
    num_outputs: int,
    counts: Sequence[int] | None = None,
) -> Conditional:
    """How a word, or a frame of notes, is chosen given a context of width `size`.

    Args:
        recipe: the choice and its activation.
        size: D.
        encoder: whose matrix a tied choice takes.
        num_outputs: words, or pitches.
        counts: as in `build_model`.

    Raises:
        UserError: parts that do not fit together.

    """
    match recipe.choice:
        case config.Bernoulli() | config.NADE():
            if isinstance(encoder, Frames):
                return _choice_of_notes(recipe.choice, size, num_outputs)
        case _:
            if not isinstance(encoder, Frames):
                return _choice_of_words(recipe, size, encoder, num_outputs, counts)
    raise UserError(
        "model.encoder and model.output.choice do not fit together: frames of notes need a choice of notes"
        ' (kind = "bernoulli" or "nade"), words one of words (such as kind = "flat")'
    )


def _choice_of_notes(recipe: config.Bernoulli | config.NADE, size: int, num_pitches: int) -> Conditional:
    match recipe:
        case config.Bernoulli(bias=bias):
            return Bernoulli(num_pitches, size, bias=bias)
        case config.NADE(size=hidden):
            return NADE(num_pitches, size, hidden)
        case _:
            assert_never(recipe)


def _choice_of_words(
    recipe: config.Output, size: int, encoder: TokenEncoder, num_words: int, counts: Sequence[int] | None
) -> Conditional:
    activation = recipe.activation
    assert not isinstance(recipe.choice, config.Bernoulli | config.NADE)
    match recipe.choice:
        case config.Flat() as flat:
            weight = _word_matrix(flat.tied, num_words, size, encoder)
            return Flat(weight, activation, bias=flat.bias, shift=flat.shift)
        case config.Adaptive() as adaptive:
            _check_cutoffs(adaptive.cutoffs, num_words)
            return Adaptive(
                num_words, size, adaptive.cutoffs, activation, div_value=adaptive.div_value, bias=adaptive.bias
            )
        case config.Tree() as tree:
            weight = _word_matrix(tree.tied, num_words, size, encoder)
            return Tree(weight, _clusters(tree, num_words, counts), activation, bias=tree.bias)
        case config.RareClass() as rare:
            kept = _num_kept(rare.threshold, num_words, counts)
            return RareClass(num_words, kept, size, activation, bias=rare.bias)
        case config.Monotone() as monotone:
            weight = _word_matrix(monotone.tied, num_words, size, encoder)
            return Monotone(weight, activation, pieces=monotone.pieces, reach=monotone.range, bias=monotone.bias)
        case config.Mixtape() as mixtape:
            width = mixtape.size or (encoder.size if mixtape.tied else size)
            return Mixtape(
                _word_matrix(mixtape.tied, num_words, width, encoder, "model.output.choice.size is"),
                size,
                activation,
                components=mixtape.components,
                gate_size=mixtape.gate_size,
                frequent=mixtape.frequent,
                bias=mixtape.bias,
            )
        case _:
            assert_never(recipe.choice)


def _word_matrix(
    tied: bool, num_words: int, width: int, encoder: TokenEncoder, whose: str = "contexts have"
) -> nn.Parameter:
    if not tied:
        return nn.Parameter(torch.empty(num_words, width))
    if not isinstance(encoder, Lookup):
        raise UserError(
            'model.output.choice.tied needs a matrix of word vectors, and model.encoder.kind = "characters" has none;'
            ' set tied = false, or take kind = "lookup"'
        )
    if width != encoder.size:
        raise UserError(
            f"model.output.choice.tied needs contexts as wide as the word vectors, but {whose} {width} and"
            f" model.encoder.size is {encoder.size}; make them equal or set tied = false"
        )
    return encoder.weight


def _check_cutoffs(cutoffs: Sequence[int], num_words: int) -> None:
    if list(cutoffs) != sorted(set(cutoffs)) or cutoffs[-1] >= num_words:
        raise UserError(
            f"model.output.choice.cutoffs is {list(cutoffs)}; cut-offs must rise and be less than the {num_words} words"
            " of the vocabulary"
        )


def _clusters(recipe: config.Tree, num_words: int, counts: Sequence[int] | None) -> adaptive.Clusters:
    """The clusters that training begins with; by similarity they are made once there are word vectors."""
    number = recipe.clusters or math.ceil(math.sqrt(num_words))
    adaptive.check(num_words, number)
    if recipe.assignment == "random":
        return adaptive.at_random(num_words, number, lambda n: torch.randperm(n, device="cpu").numpy())
    frequency = zipf(num_words).numpy() if counts is None else np.asarray(counts, dtype=np.float64)
    return adaptive.by_frequency(frequency, number)


def _num_kept(threshold: int, num_words: int, counts: Sequence[int] | None) -> int:
    """How many words are seen `threshold` times or more."""
    if counts is None:
        raise UserError('model.output.choice.kind = "rare-class" needs the counts of a vocabulary')
    assert len(counts) == num_words
    assert all(high >= low for high, low in pairwise(counts)), "words by falling frequency"
    kept = sum(count >= threshold for count in counts)
    if not kept:
        raise UserError(
            f"model.output.choice.threshold is {threshold}, but no word is seen so often; the most frequent is seen"
            f" {counts[0]} times: lower it"
        )
    return kept
