"""Count-based baselines: a unigram model, and interpolated modified Kneser-Ney (Chen & Goodman 1999).

A small implementation of our own, since no maintained package serves: KenLM's wheel only reads tables that a separate
program estimates, NLTK's Kneser-Ney has one fixed discount and scans the n-grams for every word it scores, and
kaldingram's is the unmodified form. Every step here is a sort or a table look-up of NumPy: memory and time grow as
(order x tokens), and no [V, V] table exists.

An n-gram is numbered by its place among the sorted keys (number of its first n - 1 words) * V + (its last word), so
looking up a word in its context is one binary search, and every level needs only the numbers of the level below.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[Any]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Level(NamedTuple):
    """The probabilities of one length of n-grams.

    Attributes:
        keys: sorted keys of the n-grams that were seen, [U].
        discounted: their counts less the discount, [U].
        total: the sum of counts in each context, [contexts].
        backoff: the probability that a context leaves to the level below, [contexts].
    """

    keys: Int64s
    discounted: Floats
    total: Floats
    backoff: Floats


def level_of(keys: Int64s, counts: Int64s, contexts: int, vocabulary_size: int) -> Level:
    """The level of the n-grams of one length, from their sorted keys [U].

    `counts` [U] are occurrences at the highest order, distinct words in front of them at the others; `contexts` is the
    number of contexts.
    """
    context = keys // vocabulary_size
    taken: Floats = np.minimum(_discounts(counts)[np.minimum(counts, 3)], counts)
    total: Floats = np.bincount(context, weights=counts, minlength=contexts).astype(np.float64)
    left: Floats = np.bincount(context, weights=taken, minlength=contexts).astype(np.float64)
    backoff = np.divide(left, total, out=np.ones_like(total), where=total > 0)
    discounted: Floats = counts - taken
    return Level(keys, discounted, total, backoff)


def _discounts(counts: Int64s) -> Floats:
    """D by count (0, 1, 2, 3 and more), from how many n-grams have counts 1 to 4 (Chen & Goodman 1999).

    A discount that would not be positive is half the count (1.5 for three and more); so are all discounts of a level
    that has no n-gram of one of these counts, as in a small text.
    """
    of = np.bincount(np.minimum(counts, 5), minlength=6).astype(np.float64)
    discounts = np.array([0.0, 0.5, 1.0, 1.5])
    if not of[1:5].all():
        return discounts
    ratio = of[1] / (of[1] + 2 * of[2])
    for count in (1, 2, 3):
        value = count - (count + 1) * ratio * of[count + 1] / of[count]
        if value > 0:
            discounts[count] = value
    return discounts


class KneserNey:
    """p_m(w | h) = max(c(h w) - D, 0) / c(h) + backoff(h) p_{m-1}(w | h'), with three discounts per level.

    The highest level counts occurrences, the levels below count distinct words in front of the n-gram, and the lowest
    is interpolated with the uniform distribution, so every word has a probability. Contexts run across `<eos>`, an
    ordinary token: on Penn Treebank, starting afresh after it gave a slightly higher perplexity. The first of `levels`
    is that of unigrams.
    """

    def __init__(self, levels: Sequence[Level], vocabulary_size: int) -> None:
        self.levels, self.vocabulary_size = tuple(levels), vocabulary_size

    @classmethod
    def train(cls, tokens: Ids, vocabulary_size: int, order: int = 5) -> "KneserNey":
        """Count the n-grams of a stream [n], n > 0, up to `order` (1 or more) or its length where that is shorter."""
        stream = _words(tokens, vocabulary_size)
        assert len(stream) > 0, "there must be something to count"
        assert order > 0, order
        order = min(order, len(stream))
        shorter = np.zeros(len(stream), dtype=np.int64)
        keys: list[Int64s] = []
        counts: list[Int64s] = []
        for length in range(1, order + 1):
            last = stream[length - 1 :]
            numbered = shorter[: len(last)] * vocabulary_size + last
            found, first, numbers, occurrences = np.unique(
                numbered, return_index=True, return_inverse=True, return_counts=True
            )
            if counts:
                # Each distinct n-gram puts one more distinct word in front of the (n - 1)-gram that it ends with.
                counts[-1] = np.bincount(shorter[first + 1], minlength=len(keys[-1]))
            keys.append(found)
            counts.append(occurrences)
            shorter = numbers
        contexts = [1, *map(len, keys[:-1])]
        return cls(
            [level_of(*level, vocabulary_size) for level in zip(keys, counts, contexts, strict=True)], vocabulary_size
        )

    @property
    def order(self) -> int:
        """The longest n-gram."""
        return len(self.levels)

    def log_prob(self, tokens: Ids, history: Ids | Sequence[int] = ()) -> Floats:
        """The natural logarithm of the probability of each token, [n]; `history` precedes the first.

        At most order - 1 words of the history matter.
        """
        before = np.asarray(history, dtype=np.int64)[max(0, len(history) - self.order + 1) :]
        stream = _words(np.concatenate([before, np.asarray(tokens, dtype=np.int64)]), self.vocabulary_size)
        probability = np.full(len(stream), 1 / self.vocabulary_size)
        context = np.zeros(len(stream), dtype=np.int64)
        for level in self.levels:
            found = self._find(level, context, stream)
            known = (context >= 0) & (level.total[context] > 0)
            here = np.where(found >= 0, level.discounted[found], 0.0) / np.where(known, level.total[context], 1.0)
            probability = np.where(known, here + level.backoff[context] * probability, probability)
            context = np.concatenate([[-1], found])[: len(stream)]
        return np.log(probability[len(before) :])

    def _find(self, level: Level, context: Int64s, words: Int64s) -> Int64s:
        """The numbers of context-and-word n-grams; -1 where unseen, as after context -1, whose keys are negative."""
        keys = context * self.vocabulary_size + words
        place = np.minimum(np.searchsorted(level.keys, keys), len(level.keys) - 1)
        return np.where(level.keys[place] == keys, place, -1)


class Unigram:
    """Relative frequencies with one added to every count [V], so that no word is impossible."""

    def __init__(self, counts: Int64s) -> None:
        self.counts = counts
        self.log_probs: Floats = np.log(counts + 1.0) - np.log((counts + 1.0).sum())

    @classmethod
    def train(cls, tokens: Ids, vocabulary_size: int) -> "Unigram":
        """Count the words of a stream."""
        return cls(np.bincount(_words(tokens, vocabulary_size), minlength=vocabulary_size))

    def log_prob(self, tokens: Ids, history: Ids | Sequence[int] = ()) -> Floats:  # noqa: ARG002
        """As that of `KneserNey`, but the history does not matter."""
        return self.log_probs[_words(tokens, len(self.counts))]


def _words(tokens: Ids, vocabulary_size: int) -> Int64s:
    # A word outside the vocabulary would share its key with another n-gram.
    words = np.asarray(tokens, dtype=np.int64)
    assert words.size == 0 or (words.min() >= 0 and words.max() < vocabulary_size), "a word outside the vocabulary"
    return words
