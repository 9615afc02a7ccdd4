"""The figures of a model on a split, as they are reported and written to results.json."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from elman.data.corpus import Split
from elman.data.spacing import has_words
from elman.evaluation.open_vocabulary import reading
from elman.evaluation.perplexity import Score, evaluate
from elman.model import LanguageModel
from elman.units import perplexity


def split_figures(
    model: LanguageModel,
    split: Split,
    first: int,
    *,
    streams: int = 1,
    length: int = 70,
    warm_up: int = 0,
    skip_first: bool = False,
    advance: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Evaluate a split; arguments as for `EvaluationWindows`."""
    model, windows = reading(
        model, split, first, streams=streams, length=length, warm_up=warm_up, skip_first=skip_first
    )
    score = evaluate(model, windows, advance)
    return {**figures(score, split), "context": "carried", "streams": windows.streams, "warm_up": warm_up}


def figures(score: Score, split: Split) -> dict[str, Any]:
    """Nats and bits a token, perplexity, bits per character, per byte and per word, and what was counted.

    Whatever the tokens are, a word's perplexity is exp of all nats over the words of the split and its line ends
    (`elman.data.text.Passage`), so that models of words, subwords, characters and bytes of one text compare. Where
    the text has no spaces between words (`elman.data.spacing`), figures a word are None.
    """
    total, spaced = score.nll_sum / math.log(2), has_words(split.unseparated, split.characters)
    return {
        "split": split.name,
        "nll": score.nll,
        "perplexity": score.perplexity,
        "bits_per_token": score.bits,
        "bits_per_character": total / max(1, split.characters),
        "bits_per_byte": total / max(1, split.num_bytes),
        "bits_per_word": total / max(1, split.num_words) if spaced else None,
        "word_perplexity": perplexity(score.nll_sum / max(1, split.num_words)) if spaced else None,
        "tokens": score.count,
        "unknown": split.unknown,
        "characters": split.characters,
        "bytes": split.num_bytes,
        "words": split.num_words,
    }


def score_of(log_probs: np.ndarray) -> Score:
    """The score of per-token log-probabilities (nats); NaN tokens are not counted."""
    counted = log_probs[~np.isnan(log_probs)]
    return Score(-float(counted.sum(dtype=np.float64)), len(counted))


def average_probabilities(log_probs: list[np.ndarray], weights: list[float] | None = None) -> np.ndarray:
    """Log of the weighted mean of probabilities, token by token: an ensemble of models (float64 [n]).

    Example:
        >>> average_probabilities([np.log([0.5]), np.log([0.25])]).round(4)
        array([-0.9808])

    """
    stacked = np.stack([part.astype(np.float64) for part in log_probs])
    share = np.full(len(stacked), 1 / len(stacked)) if weights is None else np.array(weights) / np.sum(weights)
    with np.errstate(divide="ignore"):
        return np.logaddexp.reduce(stacked + np.log(share)[:, None], axis=0)
