"""A smaller model: n-grams left out by the relative entropy that this adds, or all above a length.

What is left out is predicted by backing off, and the back-off weights of all contexts are computed again so that
probabilities sum to one.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from elman.evaluation.ngram.table import BackoffTable, Bools, Floats

PART = 1 << 20  # n-grams whose lower-order probabilities are looked up at once


def prune(table: BackoffTable, threshold: float) -> BackoffTable:
    """Leave out each n-gram without which the perplexity rises by less than a factor of 1 + threshold (Stolcke 1998).

    With all other parameters as they are, leaving w out after h changes the relative entropy (nats) by

        D = -p(h) (p(w | h) (log p(w | h') + log b' - log p(w | h)) + (log b' - log b) (1 - sum of p(v | h) over v)),

    where b and b' are the back-off weights of h before and after, and v are the words seen after h. p(h) is the
    product of the probabilities of its words by the model; `<s>` counts as `</s>` there, as in SRILM. The longest
    n-grams are judged first, all of a length at once, and an n-gram that is the context of one that stays is kept.
    """
    assert threshold >= 0, threshold
    kept: list[Bools] = [np.ones(len(level.keys), dtype=bool) for level in table.levels]
    context_log_prob = _log_prob_of_contexts(table)
    for length in range(table.order, 1, -1):
        level = table.levels[length - 1]
        rise = entropy_rise(table, length, context_log_prob[length - 2])
        with np.errstate(over="ignore"):
            keep = np.expm1(rise) >= threshold
        if length < table.order:
            followed = table.levels[length].keys[kept[length]] // table.vocabulary_size
            keep |= np.bincount(followed, minlength=len(level.keys)) > 0
        kept[length - 1] = keep
    return renormalised(table.keeping(kept))


def cut(table: BackoffTable, order: int) -> BackoffTable:
    """The n-grams up to a length, with the weights and probabilities that they have.

    Of a Kneser-Ney model the lower lengths are made to complete the highest one, and are poor models on their own.
    """
    levels = list(table.levels[:order])
    levels[-1] = levels[-1]._replace(backoff=np.zeros_like(levels[-1].backoff))
    return BackoffTable(levels, table.vocabulary_size, table.markers)


def entropy_rise(table: BackoffTable, length: int, context_log_prob: Floats) -> Floats:
    """D of each n-gram of a length, [U], given the log-probabilities of the contexts of that length."""
    level, below = table.levels[length - 1], table.levels[length - 2]
    context = level.keys // table.vocabulary_size
    log_prob, lower = level.log_prob, lower_log_prob(table, length)
    prob, lower_prob = np.exp(log_prob), np.exp(lower)
    left = _at_least(1.0 - np.bincount(context, weights=prob, minlength=len(below.keys)))[context]
    lower_left = _at_least(1.0 - np.bincount(context, weights=lower_prob, minlength=len(below.keys)))[context]
    weight = np.log(left + prob) - np.log(lower_left + lower_prob)
    change = weight - below.backoff[context]
    with np.errstate(invalid="ignore"):
        seen = np.where(prob > 0, prob * (lower + weight - log_prob), 0.0)
    return -np.exp(context_log_prob[context]) * (seen + change * left)


def renormalised(table: BackoffTable) -> BackoffTable:
    """The table with back-off weights that make the probabilities after every context sum to one."""
    levels = list(table.levels)
    for length in range(2, table.order + 1):
        level, below = levels[length - 1], levels[length - 2]
        context = level.keys // table.vocabulary_size
        lower = np.exp(lower_log_prob(BackoffTable(levels, table.vocabulary_size, table.markers), length))
        left = 1.0 - np.bincount(context, weights=np.exp(level.log_prob), minlength=len(below.keys))
        lower_left = 1.0 - np.bincount(context, weights=lower, minlength=len(below.keys))
        followed = np.bincount(context, minlength=len(below.keys)) > 0
        weight = np.where(followed, np.log(_at_least(left)) - np.log(_at_least(lower_left)), 0.0)
        levels[length - 2] = below._replace(backoff=weight)
    return BackoffTable(levels, table.vocabulary_size, table.markers)


def lower_log_prob(table: BackoffTable, length: int) -> Floats:
    """The log-probability of the last word of each n-gram of a length after one word less, [U]."""
    lower, found = cut(table, length - 1), [np.empty(0)]
    for at in range(0, len(table.levels[length - 1].keys), PART):
        rows = table.rows(length, slice(at, at + PART))[:, 1:]
        found.append(lower.score(rows, rows)[0][:, -1])
    return np.concatenate(found)


def _log_prob_of_contexts(table: BackoffTable) -> list[Floats]:
    """The log-probability of each n-gram's words in a row, by length from 1 on, the longest length apart."""
    first = table.levels[0].log_prob.copy()
    if table.markers is not None:
        first[table.markers.begin] = first[table.markers.end]
    found = [first]
    for level in table.levels[1:-1]:
        found.append(found[-1][level.keys // table.vocabulary_size] + level.log_prob)
    return found


def _at_least(mass: npt.NDArray[np.floating[Any]]) -> Floats:
    """Probability that is left for backing off, which rounding may have made 0 or negative."""
    found: Floats = np.maximum(mass, 1e-12)
    return found
