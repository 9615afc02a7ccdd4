"""What an arm costs by its sizes alone, for the list of experiments; before a run steps are timed instead."""

import torch

from elman.build import build_model
from elman.config import Mixture, Recipe
from elman.data.catalog import info
from elman.reproduce.claim import Claim, Computation, Scale, recipe_of
from elman.seq2seq import SequenceToSequence

RATE = 60e9
"""Floating-point operations a second of one thread of a processor of 2024, in training these models."""

_TOKENS = {"shakespeare": 1_200_000, "one-billion-word": 800_000_000, "nottingham": 176_561}
_CHARACTERS = {"shakespeare": 5_000_000}
_WORDS = {"shakespeare": 27_000, "nottingham": 93}
"""Tokens and characters of training text, and words of vocabularies, about, where no count is published; of music its
steps and pitches."""


_PAIRS = {"tsv": (600_000, 240_000), "parallel": (570_000, 440_000), "trees": (66_000, 180_000)}
"""Symbols of training sources and targets, about: 30,000 headlines, 50,000 sentences, 4,000 trees."""
_GIGAWORD = (120_000_000, 40_000_000)
"""The same of 3.8 million headlines in subwords, whose recipes do not cut the vocabulary."""


def nominal_minutes(claim: Claim, scale: Scale, seeds: int) -> float:
    """Minutes on one thread to train all runs of a claim and to measure and compute, nothing of it cached."""
    sources = [claim.origin(arm, scale) for arm in claim.arms]
    return seeds * sum(
        source.minutes
        if isinstance(source, Computation)
        else training_minutes(recipe_of(source, 1)) + claim.measure.minutes
        for source in sources
    )


def training_minutes(recipe: Recipe) -> float:
    """Minutes on one thread: six operations a weight and token, and those of the choice for every component.

    A choice that leaves out most words, such as adaptive softmax, costs less than this.
    """
    pairs = recipe.data.pairs
    if not recipe.of_pairs:
        read, (tokens, words) = 0, text_size(recipe)
    else:
        read, tokens = _GIGAWORD if pairs.form == "tsv" and pairs.max_vocabulary is None else _PAIRS[pairs.form]
        words = 100 if pairs.form == "trees" else pairs.max_vocabulary or 5_000
    with torch.device("meta"):
        model = build_model(recipe.model, words)
    reader = _count(model.reader) if isinstance(model, SequenceToSequence) else 0
    mixed = recipe.model.output.contexts
    components = sum(mixed.heads.values()) if isinstance(mixed, Mixture) else 1
    weights = _count(model.core) + _count(model.output.contexts) + components * _count(model.output.choice)
    epochs = recipe.training.epochs + (recipe.training.fine_tune.epochs if recipe.training.fine_tune else 0)
    return 6 * (weights * tokens + reader * read) * epochs / RATE / 60


def text_size(recipe: Recipe) -> tuple[int, int]:
    """Training tokens and words of the recipe's own corpus, as published or about."""
    name, text = recipe.data.corpus, recipe.data.text
    if recipe.data.grammar is not None:
        return 7 * recipe.data.grammar.sentences, 50
    assert name is not None, "recipes of claims name their corpus"
    published = info(name).published
    if text.tokenisation == "characters":
        return _CHARACTERS.get(name) or published["train"], 100
    words = _WORDS.get(name) or published["vocabulary"]
    return _TOKENS.get(name) or published["train"], min(words, text.max_vocabulary or words)


def _count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
