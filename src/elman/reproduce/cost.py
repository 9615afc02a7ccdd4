"""Nominal costs of claims, for their list: from the sizes alone, without timing a step."""

import torch

from elman.config import Model
from elman.config.recipe import Recipe
from elman.learning.progress import phases_of
from elman.network.build import build_model
from elman.network.output.contexts import Mixture
from elman.network.seq2seq import SequenceToSequence
from elman.reproduce.arm import Computation, Scale, recipe_of
from elman.reproduce.claim import Claim
from elman.reproduce.grid import trial_recipes
from elman.tasks.open import task_of

RATE = 60e9
"""Floating-point operations per second of one thread of a processor of 2024, in training these models."""


def nominal_minutes(claim: Claim, scale: Scale) -> float:
    """Minutes on one thread to train all runs of a claim and to measure and compute, with nothing kept."""
    sources = [claim.origin(arm, scale) for arm in claim.arms]
    computing = [source.minutes for source in sources if isinstance(source, Computation)]
    trained = [source for source in sources if not isinstance(source, Computation)]
    once = [training_minutes(recipe_of(source, 1)) + claim.measure.minutes for source in trained]
    tried = [training_minutes(recipe) for source in trained for _, recipe in trial_recipes(source)]
    return claim.num_seeds(scale) * sum([*computing, *once]) + sum(tried)


def training_minutes(recipe: Recipe) -> float:
    """Minutes on one thread: six operations per weight and token, those of the choice for every component.

    This overestimates a choice that leaves out most words, such as adaptive softmax.
    """
    size = task_of(recipe).nominal_size(recipe)
    counted = repr(recipe.model), size.words
    if counted not in _WEIGHTS:
        _WEIGHTS[counted] = _weights(recipe.model, size.words)
    weights, reader = _WEIGHTS[counted]
    epochs = sum(phase.epochs for phase in phases_of(recipe.training))
    return 6 * (weights * size.tokens + reader * size.source_tokens) * epochs / RATE / 60


_WEIGHTS: dict[tuple[str, int], tuple[int, int]] = {}
"""Those of networks that were built already: most runs of a claim differ in other keys."""


def _weights(record: Model, words: int) -> tuple[int, int]:
    """Those that a target token passes, and those of the reader of sources."""
    with torch.device("meta"):
        model = build_model(record, words)
    reader = _count(model.reader) if isinstance(model, SequenceToSequence) else 0
    mixed = record.output.contexts
    components = sum(mixed.heads.values()) if isinstance(mixed, Mixture) else 1
    return _count(model.core) + _count(model.output.contexts) + components * _count(model.output.choice), reader


def _count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
