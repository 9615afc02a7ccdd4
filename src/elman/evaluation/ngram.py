"""Count-based baselines: a unigram model, and interpolated modified Kneser-Ney (Chen & Goodman 1999).

A small implementation of our own, since no maintained package serves: KenLM's wheel only reads tables that a separate
program estimates, NLTK's Kneser-Ney has one fixed discount and scans the n-grams for every word it scores, and
kaldingram's is the unmodified form. Every step here is a sort or a table look-up of NumPy: memory and time grow as
(order x tokens), and no [V, V] table exists.

An n-gram is numbered by its place among the sorted keys (number of its first n - 1 words) * V + (its last word), so
looking up a word in its context is one binary search, and every level needs only the numbers of the level below.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from elman.evaluation.ngram_file import load_counts, save_counts
from elman.evaluation.ngram_levels import Floats, Ids, Int64s, Level, NGrams, interpolate, level_of


class CountModel(Protocol):
    """A model that gives log-probabilities of a stream."""

    def log_prob(self, tokens: Ids, history: Ids | Sequence[int] = ()) -> Floats:
        """The natural logarithm of the probability of each token, [n]; `history` precedes the first."""

    def distribution(self, history: Ids | Sequence[int] = ()) -> Floats:
        """The probability of every word after `history`, [V]; it sums to one."""


class KneserNey:
    """p_m(w | h) = max(c(h w) - D, 0) / c(h) + backoff(h) p_{m-1}(w | h'), with three discounts a level.

    The highest level counts occurrences, the levels below count distinct words in front of the n-gram, and the lowest
    is interpolated with the uniform distribution, so every word has a probability. Contexts run across `<eos>`, an
    ordinary token: on Penn Treebank, starting afresh after it gave a slightly higher perplexity.

    Args:
        grams: unigrams first.
        vocabulary_size: V.

    """

    def __init__(self, grams: Sequence[NGrams], vocabulary_size: int) -> None:
        self.grams, self.vocabulary_size = tuple(grams), vocabulary_size
        contexts = [1, *(len(level.keys) for level in grams)]
        self.levels = [level_of(level, size, vocabulary_size) for level, size in zip(grams, contexts, strict=False)]

    @classmethod
    def train(cls, tokens: Ids, vocabulary_size: int, order: int = 5) -> "KneserNey":
        """Count the n-grams of a stream up to `order`, or up to its length where that is shorter.

        Args:
            tokens: word ids below V, `<eos>` among them, [n] with n > 0.
            vocabulary_size: V.
            order: the longest n-gram, 1 or more.

        """
        stream = _words(tokens, vocabulary_size)
        assert len(stream) > 0, "there must be something to count"
        assert order > 0, order
        order = min(order, len(stream))
        shorter = np.zeros(len(stream), dtype=np.int64)
        grams: list[NGrams] = []
        for length in range(1, order + 1):
            last = stream[length - 1 :]
            numbered = shorter[: len(last)] * vocabulary_size + last
            keys, first, numbers, occurrences = np.unique(
                numbered, return_index=True, return_inverse=True, return_counts=True
            )
            if grams:
                # Each distinct n-gram puts one more distinct word in front of the (n - 1)-gram that it ends with.
                fronts = np.bincount(shorter[first + 1], minlength=len(grams[-1].keys))
                grams[-1] = NGrams(grams[-1].keys, fronts)
            grams.append(NGrams(keys, occurrences))
            shorter = numbers
        return cls(grams, vocabulary_size)

    @property
    def order(self) -> int:
        """The longest n-gram."""
        return len(self.levels)

    def log_prob(self, tokens: Ids, history: Ids | Sequence[int] = ()) -> Floats:
        """See `CountModel`; at most order - 1 words of the history matter."""
        before = np.asarray(history, dtype=np.int64)[max(0, len(history) - self.order + 1) :]
        stream = _words(np.concatenate([before, np.asarray(tokens, dtype=np.int64)]), self.vocabulary_size)
        probability = np.full(len(stream), 1 / self.vocabulary_size)
        context = np.zeros(len(stream), dtype=np.int64)
        for level in self.levels:
            found = self._find(level, context, stream)
            probability = interpolate(level, context, found, probability)
            context = np.concatenate([[-1], found])[: len(stream)]
        return np.log(probability[len(before) :])

    def distribution(self, history: Ids | Sequence[int] = ()) -> Floats:
        """See `CountModel`; at most order - 1 words of the history matter."""
        words = np.arange(self.vocabulary_size)
        probability = np.full(self.vocabulary_size, 1 / self.vocabulary_size)
        known = _words(np.asarray(history, dtype=np.int64), self.vocabulary_size)
        for length, level in enumerate(self.levels[: len(known) + 1]):
            number = np.zeros(1, dtype=np.int64)
            for lower, word in zip(self.levels, known[len(known) - length :], strict=False):
                number = self._find(lower, number, np.array([word]))
            context = np.full(self.vocabulary_size, number[0])
            probability = interpolate(level, context, self._find(level, context, words), probability)
        return probability

    def save(self, path: Path) -> None:
        """Write the counts to one safetensors file.

        Raises:
            UserError: the folder cannot be written or the disk is full.

        """
        tensors = {f"{name}.{n}": ids for n, level in enumerate(self.grams, 1) for name, ids in level._asdict().items()}
        save_counts(path, {"model": "kneser-ney", "vocabulary_size": str(self.vocabulary_size)}, tensors)

    @classmethod
    def load(cls, path: Path) -> "KneserNey":
        """Read what `save` wrote; the model is the same to the last bit.

        Raises:
            UserError: no such file, truncated, altered, or not a Kneser-Ney model.

        """
        size, tensors = load_counts(path, "kneser-ney")
        orders = range(1, len(tensors) // len(NGrams._fields) + 1)
        return cls([NGrams(tensors[f"keys.{n}"], tensors[f"counts.{n}"]) for n in orders], size)

    def _find(self, level: Level, context: Int64s, words: Int64s) -> Int64s:
        """The numbers of context-and-word n-grams; -1 where unseen, as after context -1, whose keys are negative."""
        keys = context * self.vocabulary_size + words
        place = np.minimum(np.searchsorted(level.keys, keys), len(level.keys) - 1)
        return np.where(level.keys[place] == keys, place, -1)


class Unigram:
    """Relative frequencies with one added to every count, so that no word is impossible.

    Args:
        counts: how often each word was seen, [V].

    """

    def __init__(self, counts: Int64s) -> None:
        self.counts = counts
        self.log_probs: Floats = np.log(counts + 1.0) - np.log((counts + 1.0).sum())

    @classmethod
    def train(cls, tokens: Ids, vocabulary_size: int) -> Self:
        """Count the words of a stream."""
        return cls(np.bincount(_words(tokens, vocabulary_size), minlength=vocabulary_size))

    def log_prob(self, tokens: Ids, history: Ids | Sequence[int] = ()) -> Floats:  # noqa: ARG002
        """See `CountModel`; the history does not matter."""
        return self.log_probs[_words(tokens, len(self.counts))]

    def distribution(self, history: Ids | Sequence[int] = ()) -> Floats:  # noqa: ARG002
        """See `CountModel`; the history does not matter."""
        return np.exp(self.log_probs)

    def save(self, path: Path) -> None:
        """See `KneserNey.save`."""
        save_counts(path, {"model": "unigram", "vocabulary_size": str(len(self.counts))}, {"counts": self.counts})

    @classmethod
    def load(cls, path: Path) -> Self:
        """See `KneserNey.load`."""
        return cls(load_counts(path, "unigram")[1]["counts"])


def _words(tokens: Ids, vocabulary_size: int) -> Int64s:
    # A word outside the vocabulary would share its key with another n-gram.
    words = np.asarray(tokens, dtype=np.int64)
    assert words.size == 0 or (words.min() >= 0 and words.max() < vocabulary_size), "a word outside the vocabulary"
    return words
