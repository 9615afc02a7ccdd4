"""Count-based baselines: a unigram model, and interpolated modified Kneser-Ney (Chen & Goodman 1999).

A small implementation of our own, since the maintained packages serve otherwise: one wants the tables of an external
program, the other estimates by Python loops over words. Every step here is a sort or a table look-up of NumPy: memory
and time grow as (order x tokens), and no [V, V] table exists.

An n-gram is numbered by its place among the sorted keys (number of its first n - 1 words) * V + (its last word), so
looking up a word in its context is one binary search, and every level needs only the numbers of the level below.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


class CountModel(Protocol):
    """A model that gives log-probabilities of a stream."""

    def log_prob(self, tokens: Ids, history: Sequence[int] = ()) -> Floats:
        """The natural logarithm of the probability of each token, [n]; `history` precedes the first."""


class Level(NamedTuple):
    """The n-grams of one length.

    Attributes:
        keys: sorted keys of the n-grams that were seen, [U].
        discounted: their (continuation) counts less the discount, [U].
        total: the sum of counts in each context, [contexts].
        backoff: the probability that a context leaves to the level below, [contexts].

    """

    keys: npt.NDArray[np.int64]
    discounted: Floats
    total: Floats
    backoff: Floats


class KneserNey:
    """p_m(w | h) = max(c(h w) - D, 0) / c(h) + backoff(h) p_{m-1}(w | h'), with three discounts a level.

    The highest level counts occurrences, the levels below count distinct words in front of the n-gram, and the lowest
    is interpolated with the uniform distribution, so every word has a probability. Contexts run across `<eos>`, an
    ordinary token.

    Args:
        levels: unigrams first.
        vocabulary_size: V.

    """

    def __init__(self, levels: list[Level], vocabulary_size: int) -> None:
        self.levels, self.vocabulary_size = levels, vocabulary_size

    @classmethod
    def train(cls, tokens: Ids, vocabulary_size: int, order: int = 5) -> "KneserNey":
        """Count the n-grams of a stream up to `order`, or up to its length where that is shorter."""
        assert len(tokens) > 0, "there must be something to count"
        stream = np.asarray(tokens, dtype=np.int64)
        order = max(1, min(order, len(stream)))
        numbers = np.zeros(len(stream) + 1, dtype=np.int64)
        uniques: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
        starts: list[npt.NDArray[np.int64]] = [numbers]
        for length in range(1, order + 1):
            last = stream[length - 1 :]
            keys = starts[-1][: len(last)] * vocabulary_size + last
            unique, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
            uniques.append((unique, first, counts))
            starts.append(inverse.reshape(-1))
        levels = []
        for length, (unique, _, counts) in enumerate(uniques, start=1):
            if length < order:
                first = uniques[length][1]
                counts = np.bincount(starts[length][first + 1], minlength=len(unique))
            contexts = 1 if length == 1 else len(uniques[length - 2][0])
            levels.append(_level(unique, counts, contexts, vocabulary_size))
        return cls(levels, vocabulary_size)

    @property
    def order(self) -> int:
        """The longest n-gram."""
        return len(self.levels)

    def log_prob(self, tokens: Ids, history: Sequence[int] = ()) -> Floats:
        """See `CountModel`; at most order - 1 words of the history matter."""
        before = np.asarray(history, dtype=np.int64)[max(0, len(history) - self.order + 1) :]
        stream = np.concatenate([before, np.asarray(tokens, dtype=np.int64)])
        probability = np.full(len(stream), 1 / self.vocabulary_size)
        context = np.zeros(len(stream), dtype=np.int64)
        for level in self.levels:
            found = self._find(level, context, stream)
            probability = _interpolate(level, context, found, probability)
            context = np.concatenate([[-1], found[:-1]])
        return np.log(probability[len(before) :])

    def distribution(self, history: Sequence[int] = ()) -> Floats:
        """The probability of every word after `history`, [V]."""
        words = np.arange(self.vocabulary_size)
        probability = np.full(self.vocabulary_size, 1 / self.vocabulary_size)
        known = np.asarray(history, dtype=np.int64)
        for length, level in enumerate(self.levels):
            if length > len(known):
                break
            number = np.zeros(1, dtype=np.int64)
            for lower, word in zip(self.levels, known[len(known) - length :], strict=False):
                number = self._find(lower, number, np.array([word]))
            context = np.full(self.vocabulary_size, number[0])
            probability = _interpolate(level, context, self._find(level, context, words), probability)
        return probability

    def _find(self, level: Level, context: npt.NDArray[np.int64], words: Ids) -> npt.NDArray[np.int64]:
        """The numbers of context-and-word n-grams; -1 where one was not seen."""
        keys = context * self.vocabulary_size + words
        place = np.minimum(np.searchsorted(level.keys, keys), len(level.keys) - 1)
        return np.where((context >= 0) & (level.keys[place] == keys), place, -1)


class Unigram:
    """Relative frequencies with one added to every count, so that no word is impossible.

    Args:
        counts: how often each word was seen, [V].

    """

    def __init__(self, counts: Ids) -> None:
        self.log_probs: Floats = np.log(counts + 1.0) - np.log((counts + 1.0).sum())

    @classmethod
    def train(cls, tokens: Ids, vocabulary_size: int) -> "Unigram":
        """Count the words of a stream."""
        return cls(np.bincount(tokens, minlength=vocabulary_size))

    def log_prob(self, tokens: Ids, history: Sequence[int] = ()) -> Floats:  # noqa: ARG002
        """See `CountModel`."""
        return self.log_probs[np.asarray(tokens)]


def _level(keys: npt.NDArray[np.int64], counts: Ids, contexts: int, vocabulary_size: int) -> Level:
    discount = _discounts(counts)
    context = keys // vocabulary_size
    taken = np.minimum(discount[np.minimum(counts, 3)], counts)
    total: Floats = np.bincount(context, weights=counts, minlength=contexts).astype(np.float64)
    left: Floats = np.bincount(context, weights=taken, minlength=contexts).astype(np.float64)
    backoff = np.divide(left, total, out=np.ones_like(total), where=total > 0)
    return Level(keys, counts - taken, total, backoff)


def _interpolate(level: Level, context: npt.NDArray[np.int64], found: npt.NDArray[np.int64], below: Floats) -> Floats:
    known = (context >= 0) & (level.total[context] > 0)
    here = np.where(found >= 0, level.discounted[found], 0.0) / np.where(known, level.total[context], 1.0)
    return np.where(known, here + level.backoff[context] * below, below)


def _discounts(counts: Ids) -> Floats:
    """D by count (0, 1, 2, 3 and more), from how many n-grams have counts 1 to 4 (Chen & Goodman 1999, eq. 26).

    Where a small text leaves one of these empty or a discount out of (0, count], it is half the count.
    """
    of = np.bincount(np.minimum(counts, 5), minlength=6).astype(np.float64)
    discounts = np.array([0.0, 0.5, 1.0, 1.5])
    if not of[1:5].all():
        return discounts
    ratio = of[1] / (of[1] + 2 * of[2])
    for count in (1, 2, 3):
        value = count - (count + 1) * ratio * of[count + 1] / of[count]
        if 0 < value <= count:
            discounts[count] = value
    return discounts
