"""The windows of training text, in stages where a recipe starts small (Elman 1991, 1993)."""

from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np

from elman import config
from elman.data.grammar.sample import stage_tokens
from elman.data.starting_small import ForgetfulWindows, StagedWindows, stage_of
from elman.data.windows import TrainingWindows, Windows
from elman.errors import UserError


def training_windows(recipe: config.Recipe, tokens: np.ndarray, source: Path, max_extra: int | None) -> Windows:
    """The columns of a training text [N], or those of each epoch where text or memory comes in stages.

    Args:
        recipe: with `data.grammar.stages`, `training.memory`, and the windows.
        tokens: the training text; the sentences of the stages follow each other in it.
        source: the folder of the text, where a grammar's `grammar.json` gives the length of the stages.
        max_extra: caps random windows.

    Raises:
        UserError: the text is too short, or is not of the stages that the recipe names.

    """
    training, window, seed = recipe.training, recipe.training.window, recipe.seed

    def columns(part: np.ndarray) -> TrainingWindows:
        return TrainingWindows(
            part,
            training.batch_size,
            window.length,
            random=window.random,
            short_probability=window.short_probability,
            spread=window.spread,
            max_extra=max_extra,
            seed=seed,
        )

    assert isinstance(recipe.data, config.TextData)
    stages = () if recipe.data.grammar is None else recipe.data.grammar.stages
    if not stages and not training.memory:
        return columns(tokens)
    parts = _parts(tokens, source, len(stages)) if stages else [tokens]
    of_text = [stage.epochs for stage in stages] or [1]
    of_memory = [*(stage.epochs for stage in training.memory), 1]
    texts = [columns(part) for part in parts]

    def choose(epoch: int) -> Windows:
        text = texts[stage_of(of_text, epoch)]
        memory = stage_of(of_memory, epoch)
        return ForgetfulWindows(text, training.memory[memory].words, seed) if memory < len(training.memory) else text

    return StagedWindows(choose)


def _parts(tokens: np.ndarray, source: Path, count: int) -> list[np.ndarray]:
    """The tokens of every stage."""
    counts = stage_tokens(source) if (source / "grammar.json").is_file() else []
    if len(counts) != count or sum(counts) != len(tokens):
        raise UserError(
            f"{source}: data.grammar.stages names {count} stages, but this text was not made by them; leave out --data,"
            " or set data.grammar.stages=[]"
        )
    return [tokens[start:stop] for start, stop in pairwise(accumulate(counts, initial=0))]
