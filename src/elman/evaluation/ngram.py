"""Count-based baselines: a unigram model, and interpolated modified Kneser-Ney (Chen & Goodman 1999).

A small implementation of our own, since no maintained package serves: KenLM's wheel only reads tables that a separate
program estimates, NLTK's Kneser-Ney has one fixed discount and scans the n-grams for every word it scores, and
kaldingram's is the unmodified form. Every step here is a sort or a table look-up of NumPy: memory and time grow as
(order x tokens), and no [V, V] table exists.

An n-gram is numbered by its place among the sorted keys (number of its first n - 1 words) * V + (its last word), so
looking up a word in its context is one binary search, and every level needs only the numbers of the level below.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from elman.errors import UserError
from elman.files import write_atomic

# FOLDED evaluation/ngram_levels.py: One length of n-grams within interpolated modified Kneser-Ney (Chen & Goodman 1999): counts less their
# discounts.
Ids = npt.NDArray[Any]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class NGrams(NamedTuple):
    """The n-grams of one length that were seen.

    Attributes:
        keys: their keys, in order, [U].
        counts: occurrences at the highest order, distinct words in front of them at the others, [U].

    """

    keys: Int64s
    counts: Int64s


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


def level_of(grams: NGrams, contexts: int, vocabulary_size: int) -> Level:
    """The level of n-grams whose contexts are numbered below `contexts`."""
    keys, counts = grams
    context = keys // vocabulary_size
    taken: Floats = np.minimum(_discounts(counts)[np.minimum(counts, 3)], counts)
    total: Floats = np.bincount(context, weights=counts, minlength=contexts).astype(np.float64)
    left: Floats = np.bincount(context, weights=taken, minlength=contexts).astype(np.float64)
    backoff = np.divide(left, total, out=np.ones_like(total), where=total > 0)
    discounted: Floats = counts - taken
    return Level(keys, discounted, total, backoff)


def interpolate(level: Level, context: Int64s, found: Int64s, below: Floats) -> Floats:
    """The probabilities of a level, [n].

    Args:
        level: the level.
        context: the numbers of the contexts, -1 where unseen, [n].
        found: the numbers of the n-grams, -1 where unseen, [n].
        below: the probabilities that the level below gives, [n].

    """
    known = (context >= 0) & (level.total[context] > 0)
    here = np.where(found >= 0, level.discounted[found], 0.0) / np.where(known, level.total[context], 1.0)
    return np.where(known, here + level.backoff[context] * below, below)


def _discounts(counts: Int64s) -> Floats:
    """D by count (0, 1, 2, 3 and more), from how many n-grams have counts 1 to 4 (Chen & Goodman 1999).

    A discount is half the count (1.5 for three and more) where it would not be positive, and at every count of a
    level that has no n-gram of one of these counts, as in a small text.
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


# FOLDED evaluation/ngram_file.py: The counts of an n-gram model as one safetensors file, checked by a digest when it is read.
def save_counts(path: Path, header: dict[str, str], tensors: Mapping[str, Int64s]) -> None:
    """Write the counts of a model, with what it is.

    Raises:
        UserError: the folder cannot be written or the disk is full.

    """
    write_atomic(path, to_bytes(dict(tensors), {**header, "digest": _digest(header, tensors)}))


def load_counts(path: Path, model: str) -> tuple[int, dict[str, Int64s]]:
    """The vocabulary size and the counts of a file that `save_counts` wrote.

    Raises:
        UserError: no such file, truncated, altered, or not a model of this kind.

    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; give the file of a saved {model} model")
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: truncated or not a model file ({error}); train the {model} model again") from None
    digest = header.pop("digest", None)
    if header.get("model") != model:
        raise UserError(f"{path}: found {header.get('model', 'something else')}; give the file of a {model} model")
    if digest != _digest(header, tensors):
        raise UserError(f"{path}: altered since it was written (its digest does not match); train the model again")
    return int(header["vocabulary_size"]), tensors


def _digest(header: Mapping[str, str], tensors: Mapping[str, Int64s]) -> str:
    digest = hashlib.sha256(repr(sorted(header.items())).encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tensors[name].shape}".encode())
        digest.update(np.ascontiguousarray(tensors[name]).data)
    return digest.hexdigest()


# TARGET
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
