"""Evaluation of a run by a model that adapts to what it reads: dynamic evaluation, the neural cache, or both."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import torch

from elman import material
from elman.errors import UserError
from elman.evaluation.cache import CacheRule, NeuralCache
from elman.evaluation.dynamic import DynamicModel, Reading, Rule, adaptive_stream, read_static
from elman.evaluation.gradient_statistics import COLUMNS, SEGMENT, Statistics, gradient_statistics, kept_statistics
from elman.evaluation.online import AdaptiveStream
from elman.evaluation.perplexity import Score
from elman.files import write_atomic
from elman.learning.checkpoint import digest_of
from elman.learning.snapshot import model_tensors
from elman.material import AnyRun, Material
from elman.model import LanguageModel
from elman.run import Run
from elman.state import State

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
    train = material.corpus_of(run).split("train")
    text = material.beginning_of(train, tokens)
    facts = {
        "model": digest_of(model_tensors(run.model)),
        "text": train.sha256,
        "tokens": material.size_of(text),
        "columns": COLUMNS,
        "segment": SEGMENT,
    }
    path = run.path / "gradient-statistics.safetensors"

    def compute() -> Statistics:
        return gradient_statistics(run.model, material.for_statistics(text), advance)

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
    model, windows = material.column_of(run, split, method.segment, skip_first=skip_first)
    cache = None if method.cache is None else NeuralCache(method.cache)
    total, count = 0.0, 0
    parts = adaptive_stream(reader(model, method.rule, gradients), model, windows, cache)
    for done, (log_prob, _) in enumerate(parts, start=1):
        total -= log_prob.double().sum().item()
        count += len(log_prob)
        if advance is not None:
            advance(done, windows.num_windows)
    return {
        **material.figures_of(Score(total, count), split),
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
