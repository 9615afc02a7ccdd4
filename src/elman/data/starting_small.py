"""Starting small (Elman 1993): the text, or the length of memory, changes from epoch to epoch."""

import functools
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import torch

from elman import config
from elman.data.batches import Batch
from elman.data.grammar.sample import stage_tokens
from elman.data.windows import Span, TrainingWindows, Windows, columns_of
from elman.errors import UserError


class StagedWindows:
    """Windows chosen for each epoch; `choose` returns the same or equal ones for epochs that share them."""

    def __init__(self, choose: Callable[[int], Windows]) -> None:
        self._of = functools.lru_cache(maxsize=2)(choose)

    def spans(self, epoch: int) -> list[Span]:
        return [span._replace(epoch=epoch) for span in self._of(epoch).spans(epoch)]

    def batch(self, span: Span) -> Batch:
        return self._of(span.epoch).batch(span)


class ForgetfulWindows:
    """Windows of a few words, all columns fresh at the beginning of each: nothing earlier is remembered.

    Elman 1993 resets the context units after every third or fourth word, later after more. A network that forgets in
    this way sees no dependency that is longer than the window. `words` are the least and the greatest number of words;
    each length is drawn with equal probability.
    """

    def __init__(self, windows: TrainingWindows, words: tuple[int, int], seed: int = 0) -> None:
        self.windows, self.words, self.seed = windows, words, seed

    def spans(self, epoch: int) -> list[Span]:
        """The windows of an epoch, in order; together they cover every step but the last once."""
        draw, last = np.random.default_rng([self.seed, epoch]), self.windows.steps - 1
        spans, at = [], 0
        while at < last:
            length = min(int(draw.integers(self.words[0], self.words[1], endpoint=True)), last - at)
            spans.append(Span(at, length))
            at += length
        return spans

    def batch(self, span: Span) -> Batch:
        return self.windows.batch(span)._replace(fresh=torch.ones(self.windows.batch_size, dtype=torch.bool))


def stage_of(epochs: Sequence[int], epoch: int) -> int:
    """The stage of an epoch; the last has no end.

    Example:
        >>> [stage_of([2, 1], epoch) for epoch in range(5)]
        [0, 0, 1, 1, 1]
    """
    return min(sum(epoch >= sum(epochs[: index + 1]) for index in range(len(epochs))), len(epochs) - 1)


def training_windows(recipe: config.Recipe, tokens: np.ndarray, source: Path, max_extra: int | None) -> Windows:
    """The columns of a training text [N], or one set per epoch where text or memory comes in stages.

    The sentences of the stages of `data.grammar.stages` follow each other in the text; in the folder `source` of the
    text the grammar's `grammar.json` holds their lengths. `max_extra` caps random windows.

    Raises UserError where the text is too short, or is not of the stages that the recipe names.
    """
    training, seed = recipe.training, recipe.seed
    assert isinstance(recipe.data, config.TextData)
    stages = () if recipe.data.grammar is None else recipe.data.grammar.stages
    if not stages and not training.memory:
        return columns_of(tokens, training, max_extra, seed)
    counts = [len(tokens)]
    if stages:
        counts = stage_tokens(source) if (source / "grammar.json").is_file() else []
        if len(counts) != len(stages) or sum(counts) != len(tokens):
            raise UserError(
                f"{source}: data.grammar.stages names {len(stages)} stages, but this text was not made by them; leave"
                " out --data, or set data.grammar.stages=[]"
            )
    parts = [tokens[start:stop] for start, stop in pairwise(accumulate(counts, initial=0))]
    of_text = [stage.epochs for stage in stages] or [1]
    of_memory = [*(stage.epochs for stage in training.memory), 1]
    texts = [columns_of(part, training, max_extra, seed) for part in parts]

    def choose(epoch: int) -> Windows:
        text = texts[stage_of(of_text, epoch)]
        memory = stage_of(of_memory, epoch)
        return ForgetfulWindows(text, training.memory[memory].words, seed) if memory < len(training.memory) else text

    return StagedWindows(choose)
