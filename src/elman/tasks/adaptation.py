"""Evaluation of a run by a model that adapts to what it reads: dynamic evaluation, the neural cache, or both."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
import torch

from elman.config.inference import CacheRule, Rule
from elman.data.music.corpus import Music, Pieces
from elman.data.music.windows import PieceWindows
from elman.data.text.corpus import Corpus, Split
from elman.data.windows import Reading as Windows
from elman.data.windows import TrainingWindows
from elman.errors import UserError
from elman.evaluation.adaptive_stream import AdaptiveStream
from elman.evaluation.cache import NeuralCache
from elman.evaluation.dynamic import DynamicModel, Reading, adaptive_stream, read_static
from elman.evaluation.gradient_statistics import (
    COLUMNS,
    SEGMENT,
    Statistics,
    gradient_statistics,
    kept_statistics,
    statistics_windows,
)
from elman.evaluation.music import piece_figures
from elman.evaluation.perplexity import Score, figures, reading
from elman.files import write_atomic
from elman.learning.checkpoint import digest_of, model_tensors
from elman.network.model import LanguageModel
from elman.network.state import State
from elman.tasks.music.run import MusicRun
from elman.tasks.text.run import Run

# FOLDED material.py: What a model adapts to: a split of a text or of music, read in one column from its beginning to its end.
#
# The state of a text is carried all the way; in music it begins anew with every piece.
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
) -> tuple[LanguageModel, Windows]:
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


# TARGET
Advance = Callable[[int, int], None]
"""Told (parts done, parts in all)."""

Saved = tuple[dict[str, torch.Tensor], dict[str, Any]]
"""Tensors and facts of a state file."""

Reader = Callable[[torch.Tensor, torch.Tensor, State], Reading]

STATIC_LENGTH = 70
"""Steps read at once where nothing is learnt; the figures do not depend on it."""


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """How a text is evaluated; without a rule the weights stay, without a cache the model is alone."""

    rule: Rule | None = None
    cache: CacheRule | None = None

    @property
    def name(self) -> str:
        """static, dynamic, cache or dynamic+cache."""
        parts = [name for name, part in (("dynamic", self.rule), ("cache", self.cache)) if part is not None]
        return "+".join(parts) or "static"

    @property
    def segment(self) -> int:
        """How many tokens are read at once."""
        return STATIC_LENGTH if self.rule is None else self.rule.segment


def statistics(run: AnyRun, tokens: int | None = None, advance: Advance | None = None) -> Statistics:
    """Gradient statistics of a run over its training text, kept in the run folder for the next time.

    Args:
        run: whose model; its training text must still be where data.json says.
        tokens: read only so many tokens from the beginning of the text; None: all.
        advance: told (segments done, segments in all).

    """
    train = corpus_of(run).split("train")
    text = beginning_of(train, tokens)
    facts = {
        "model": digest_of(model_tensors(run.model)),
        "text": train.sha256,
        "tokens": size_of(text),
        "columns": COLUMNS,
        "segment": SEGMENT,
    }
    path = run.path / "gradient-statistics.safetensors"

    def compute() -> Statistics:
        return gradient_statistics(run.model, for_statistics(text), advance)

    return kept_statistics(path, facts, compute, run.device)


def reader(model: LanguageModel, rule: Rule | None, gradients: Statistics | None = None) -> Reader:
    """What scores a segment and, where there is a rule, learns from it afterwards; the model itself stays as it is."""
    if rule is None:
        return lambda inputs, targets, state: read_static(model, inputs, targets, state)
    return DynamicModel(model, rule, gradients).read


def adaptive_reading(
    run: Run,
    rule: Rule,
    saved: Saved | None = None,
    gradients: Statistics | None = None,
    model: LanguageModel | None = None,
) -> AdaptiveStream:
    """A stream that adapts to what it reads, from its beginning or from where it was saved.

    `model` is the run's where it knows the text's words beyond the vocabulary (`Run.reading`).
    """
    stream = AdaptiveStream(run.model if model is None else model, rule, gradients, run.first)
    if saved is not None:
        stream.restore(*saved)
    return stream


def method_figures(
    run: AnyRun,
    split: Material,
    method: Method,
    gradients: Statistics | None = None,
    *,
    skip_first: bool = False,
    advance: Advance | None = None,
) -> dict[str, Any]:
    """The figures of a split as results.json holds them, with the method and its settings.

    Args:
        run: the trained model.
        split: the text, read as one stream, or the pieces, one after another.
        method: how.
        gradients: from `statistics`, for the rule "rms".
        skip_first: do not count the first token; of texts alone.
        advance: told (windows done, windows in all).

    """
    model, windows = column_of(run, split, method.segment, skip_first=skip_first)
    cache = None if method.cache is None else NeuralCache(method.cache)
    total, count = 0.0, 0
    parts = adaptive_stream(reader(model, method.rule, gradients), model, windows, cache)
    for done, (log_prob, _) in enumerate(parts, start=1):
        total -= log_prob.double().sum().item()
        count += len(log_prob)
        if advance is not None:
            advance(done, windows.num_windows)
    return {
        **figures_of(Score(total, count), split),
        "method": method.name,
        "settings": msgspec.to_builtins(method),
    }


def record(run: AnyRun, row: dict[str, Any]) -> None:
    """Write a row of the best model to results.json, in place of the one of its split and method; others stay.

    Raises:
        UserError: the file is damaged.

    """
    path = run.path / "results.json"
    new = {**row, "model": "best"}
    key = ("split", "method", "model")
    try:
        rows = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
        others = [old for old in rows if [old.get(part) for part in key] != [new[part] for part in key]]
    except (ValueError, TypeError, AttributeError):
        raise UserError(f"{path}: damaged; restore or remove the file") from None
    write_atomic(path, json.dumps([*others, new], indent=1, ensure_ascii=False) + "\n")
