"""Evaluation of a run by other methods than one pass of its model.

A model that adapts to what it reads, by dynamic evaluation, the neural cache, or both; and Monte Carlo dropout.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from torch import Tensor

from elman.config.inference import CacheRule, DropoutSampling, Rule
from elman.config.toml import flatten
from elman.errors import UserError, notice
from elman.evaluation import dynamic
from elman.evaluation.adaptive_stream import AdaptiveStream
from elman.evaluation.monte_carlo import dropout_log_probs
from elman.evaluation.perplexity import Score, in_places, sum_scores
from elman.evaluation.result import RESULTS, Result
from elman.formats import read_json
from elman.jobs import Advance
from elman.jobs.locks import waiting_for
from elman.learning.checkpoint import digest_of, model_tensors
from elman.network.fast import precision
from elman.network.model import LanguageModel
from elman.network.state import State
from elman.tasks.evaluating import AdaptationSource, EvaluationOptions
from elman.tasks.run import Run
from elman.tasks.task import write_json
from elman.tasks.text.run import TextRun

Saved = tuple[dict[str, Tensor], dict[str, Any]]  # tensors and facts of a state file
Reader = Callable[[Tensor, Tensor, State], dynamic.ScoredWindow]

STATIC_LENGTH = 70  # steps read at once where nothing is learnt; the figures do not depend on it


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """How a model adapts; without a rule its weights are not changed, without a cache nothing is mixed in."""

    rule: Rule | None = None
    cache: CacheRule | None = None

    @property
    def name(self) -> str:
        parts = [name for name, part in (("dynamic", self.rule), ("cache", self.cache)) if part is not None]
        return "+".join(parts) or "static"

    def check(self, source: AdaptationSource) -> None:
        """Raise UserError where the method is not defined for a source."""
        if self.cache is not None and not source.discrete:
            raise UserError(f"--method {self.name}: the cache is for symbols, which {source.data} lacks; use dynamic")

    @property
    def segment(self) -> int:
        return STATIC_LENGTH if self.rule is None else self.rule.segment


def statistics(run: Run, tokens: int | None = None, advance: Advance = None) -> dynamic.Statistics:
    """Gradient statistics of a run over its training data, computed once and kept in the run folder if it is writable.

    They are computed in the precision of products that is chosen, and kept ones of another are replaced. The data must
    still be where data.json says; only the first `tokens` are read (None: all). `advance` receives the segments done
    and the segments in all.
    """
    train = run.adaptation_source(EvaluationOptions(split="train"))
    text = train.beginning(tokens)
    model = digest_of(model_tensors(run.model))
    read = {"text": train.sha256, "tokens": text.size, "columns": dynamic.COLUMNS, "segment": dynamic.SEGMENT}
    facts = {"model": model, **read, "precision": precision.chosen()}
    return dynamic.kept_statistics(
        run.path / "gradient-statistics.safetensors",
        facts,
        lambda: dynamic.gradient_statistics(run.model, text.statistics_windows(), advance),
        run.device,
        keep=is_writable(run.path),
    )


def reader(model: LanguageModel, rule: Rule | None, gradients: dynamic.Statistics | None = None) -> Reader:
    """Scores a segment and, with a rule, learns from it afterwards; the model itself is not changed."""
    if rule is None:
        return lambda inputs, targets, state: dynamic.read_static(model, inputs, targets, state)
    return dynamic.DynamicModel(model, rule, gradients).read


def adaptive_reading(
    run: TextRun,
    rule: Rule,
    saved: Saved | None = None,
    gradients: dynamic.Statistics | None = None,
    model: LanguageModel | None = None,
) -> AdaptiveStream:
    """A stream that adapts to what it reads, from its beginning or from where it was saved.

    `model` is given by the run with the text's words beyond the vocabulary (`TextRun.reading`); None: the run's.
    """
    stream = AdaptiveStream(run.model if model is None else model, rule, gradients, run.first)
    if saved is not None:
        stream.restore(*saved)
    return stream


def method_figures(
    source: AdaptationSource, method: Method, gradients: dynamic.Statistics | None = None, advance: Advance = None
) -> Result:
    """The result of a split (`Run.adaptation_source`), with the method and its settings.

    The rule "rms" needs the `gradients` of `statistics`; `advance` receives the windows done and the windows in all.
    """
    parts, num_windows = _stream(source, method, gradients)
    score = sum_scores((log_prob for log_prob, _ in parts), num_windows, advance)
    settings = msgspec.to_builtins(method)
    return msgspec.structs.replace(source.result(score), method=method.name, settings=settings)


def method_log_probs(
    source: AdaptationSource, method: Method, gradients: dynamic.Statistics | None = None, advance: Advance = None
) -> np.ndarray:
    """The log-probability (nats) of every token or step, float32 [n]; NaN where it is skipped.

    The arguments are as for `method_figures`. Raises UserError where dynamic evaluation diverged.
    """
    parts, num_windows = _stream(source, method, gradients)
    return in_places(map(_converging, parts), source.size, num_windows, advance)


def _stream(
    source: AdaptationSource, method: Method, gradients: dynamic.Statistics | None
) -> tuple[Iterator[tuple[Tensor, Tensor]], int]:
    """Log-probabilities with their positions, window by window, and the number of windows."""
    method.check(source)
    model, windows = source.column(method.segment)
    cache = None if method.cache is None else dynamic.NeuralCache(method.cache)
    return dynamic.adaptive_stream(reader(model, method.rule, gradients), model, windows, cache), windows.num_windows


def _converging(part: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    if dynamic.has_diverged(part[0]):
        raise UserError(dynamic.DIVERGED)
    return part


def dropout_figures(run: Run, source: AdaptationSource, sampling: DropoutSampling, advance: Advance = None) -> Result:
    """The result of a split (`Run.adaptation_source`) under Monte Carlo dropout, with its settings.

    Masks that are held over time are held for as many steps as in the windows of training. Raises UserError where the
    network has no dropout.
    """
    rates = flatten(msgspec.to_builtins(run.recipe.model, str_keys=True))
    if not any("drop" in key.rsplit(".", 1)[-1] and value for key, value in rates):
        raise UserError(
            f"--method mc-dropout: the network of {run.path} has no dropout, so that every pass would be the same; use"
            " --method static"
        )
    length = run.recipe.training.window.length
    model, windows = source.column(length)
    log_probs = dropout_log_probs(model, windows, sampling, advance)
    settings = msgspec.to_builtins(sampling) | {"length": length}
    result = source.result(Score(-float(log_probs.sum()), len(log_probs)))
    return msgspec.structs.replace(result, method="mc-dropout", settings=settings)


def record(run: Run, row: Result) -> None:
    """Write a row of the best model to results.json in place of an earlier one of the same split and method.

    Nothing is written where the folder is read-only, or, with a notice, where the rows of the split count other
    tokens: figures beside each other count the same ones. Raises UserError where the file is damaged.
    """
    if not is_writable(run.path):
        return
    path, key = run.path / RESULTS, ("split", "method", "model")
    new = msgspec.structs.replace(row, model="best").as_dict()
    with waiting_for(path):  # another command may record its row meanwhile
        rows = read_json(path, list[dict[str, Any]]) if path.is_file() else []
        others = [old for old in rows if [old.get(part) for part in key] != [new[part] for part in key]]
        counted = [old.get("tokens") for old in others if old.get("split") == row.split]
        if counted and row.tokens not in counted:
            notice(
                f"not kept in {path}, whose rows of the {row.split} split count {counted[0]:,} tokens, and this one"
                f" {row.tokens:,}: give --skip-first where the recipe has data.evaluation.skip_first, and nowhere else"
            )
        else:
            write_json(path, [*others, new])


def is_writable(folder: Path) -> bool:
    """Whether a run folder can be written; where it cannot, a notice reports what is not kept."""
    if os.access(folder, os.W_OK):
        return True
    notice(f"{folder} cannot be written: results, gradient statistics and points of a tuning are not kept there")
    return False
