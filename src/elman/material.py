"""What a model adapts to: a split of a text or of music, read in one column from its beginning to its end.

The state of a text is carried all the way; in music it begins anew with every piece.
"""

import dataclasses
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from elman.data.corpus import Corpus, Split
from elman.data.pieces import PieceWindows
from elman.data.rolls import Music, Pieces
from elman.data.training_windows import TrainingWindows
from elman.data.windows import Reading
from elman.evaluation.figures import figures
from elman.evaluation.frames import piece_figures
from elman.evaluation.gradient_statistics import COLUMNS, SEGMENT, statistics_windows
from elman.evaluation.open_vocabulary import reading
from elman.evaluation.perplexity import Score
from elman.model import LanguageModel
from elman.music import MusicRun
from elman.run import Run

AnyRun: TypeAlias = Run | MusicRun
Material: TypeAlias = Split | Pieces
"""Tokens of a text, or the frames of whole pieces of music."""


def corpus_of(run: AnyRun, data: str | Path | None = None) -> Corpus | Music:
    """What the run was trained on, or another text or other music read as that was."""
    if isinstance(run, MusicRun):
        return run.music(data)
    return run.corpus(data)


def size_of(material: Material) -> int:
    """Tokens, or steps."""
    if isinstance(material, Pieces):
        return len(material.frames)
    return len(material.tokens)


def facts_of(material: Material) -> dict[str, Any]:
    """What tells it from other material, and from other ways to read it."""
    facts = {"text": material.sha256, "tokens": size_of(material)}
    return facts | ({"spelled": True} if isinstance(material, Split) and material.inputs is not None else {})


def beginning_of(material: Material, size: int | None) -> Material:
    """Its first `size` tokens (None: all); of music the pieces that end within so many steps, and the first always."""
    if size is None:
        return material
    if isinstance(material, Split):
        inputs = None if material.inputs is None else material.inputs[:size]
        return dataclasses.replace(material, tokens=material.tokens[:size], inputs=inputs)
    pieces = max(1, int(np.searchsorted(np.cumsum(material.lengths), size, side="right")))
    lengths = material.lengths[:pieces]
    return dataclasses.replace(material, lengths=lengths, frames=material.frames[: lengths.sum()])


def split_of(run: AnyRun, corpus: Corpus | Music, name: str) -> Material:
    """A split to read: where the model reads spelling, with its unknown words told apart."""
    if isinstance(run, Run):
        assert isinstance(corpus, Corpus)
        return run.split(corpus, name)
    return corpus.split(name)


def column_of(
    run: AnyRun, material: Material, length: int, *, skip_first: bool = False
) -> tuple[LanguageModel, Reading]:
    """The run's model, which knows the words of the text, and windows of `length` steps at most.

    `skip_first` is of texts alone.
    """
    if isinstance(run, Run):
        assert isinstance(material, Split)
        return reading(run.model, material, run.first, length=length, skip_first=skip_first)
    assert isinstance(material, Pieces)
    return run.model, PieceWindows(material.frames, material.lengths, 1, length)


def for_statistics(material: Material) -> TrainingWindows | PieceWindows:
    """The windows over which gradient statistics are taken."""
    if isinstance(material, Split):
        return statistics_windows(material.tokens)
    return PieceWindows(material.frames, material.lengths, COLUMNS, SEGMENT)


def figures_of(score: Score, material: Material) -> dict[str, Any]:
    """What results.json keeps of a score."""
    if isinstance(material, Pieces):
        return piece_figures(score, material)
    return {**figures(score, material), "context": "carried", "streams": 1, "warm_up": 0}
