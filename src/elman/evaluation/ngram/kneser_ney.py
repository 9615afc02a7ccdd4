"""Interpolated modified Kneser-Ney (Chen & Goodman 1999), of one running stream or sentence by sentence.

    p_m(w | h) = max(c(h w) - D, 0) / c(h) + backoff(h) p_{m-1}(w | h'), with three discounts per level.

The highest level counts occurrences, the levels below count distinct words in front of the n-gram, and the lowest is
interpolated with the uniform distribution, so every word has a probability. Interpolation is written as back-off
without loss: the table holds p_m(w | h) of every n-gram that was seen, and the probability of any other is
backoff(h) p_{m-1}(w | h'). Every step is a sort or a table look-up of NumPy; memory and time grow as (order x tokens).

Sentence by sentence it counts as KenLM's `lmplz` (Heafield, Pouzyrevsky, Clark & Koehn 2013): every
sentence begins with `<s>`, which is read and never predicted, an n-gram that begins with `<s>` counts its
occurrences at every level, since no word can precede it, and the uniform distribution is over all words but `<s>`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elman.errors import UserError, notice
from elman.evaluation.ngram import memory
from elman.evaluation.ngram.table import BackoffTable, Bools, Floats, Int64s, Level, Markers, within

Ids = npt.NDArray[Any]


class Counts(NamedTuple):
    """The n-grams of one length in a text.

    Attributes:
        keys: as in `Level`, [U].
        occurrences: how often each occurs, [U].
        counts: occurrences at the highest level, or where the n-gram begins with `<s>`; else the distinct words in
            front of it, [U].
        suffix: the number of its last n - 1 words, [U]; of single words 0.
    """

    keys: Int64s
    occurrences: Int64s
    counts: Int64s
    suffix: Int64s


def train(tokens: Ids, vocabulary_size: int, order: int = 5) -> BackoffTable:
    """The model of a stream [n], n > 0, of n-grams up to `order` (1 or more) or its length where that is shorter.

    Contexts run across `<eos>`, an ordinary token: on Penn Treebank, starting afresh after it gave a slightly higher
    perplexity.
    """
    words = within(tokens, vocabulary_size)
    return estimate(count(words, np.zeros_like(words), vocabulary_size, order), vocabulary_size)


class Unigram:
    """The simplest baseline: relative frequencies with one added to every count [V], so that no word is impossible."""

    def __init__(self, counts: Int64s) -> None:
        self.counts = counts
        self.log_probs: Floats = np.log(counts + 1.0) - np.log((counts + 1.0).sum())

    @classmethod
    def train(cls, tokens: Ids, vocabulary_size: int) -> "Unigram":
        """Count the words of a stream."""
        return cls(np.bincount(within(tokens, vocabulary_size), minlength=vocabulary_size))

    def log_prob(self, tokens: Ids, history: Ids | Sequence[int] = ()) -> Floats:  # noqa: ARG002
        """The log-probability (nats) of each token, [n], whatever the history."""
        return self.log_probs[within(tokens, len(self.counts))]


def baselines(tokens: Ids, vocabulary_size: int, order: int) -> dict[str, Unigram | BackoffTable]:
    """The unigram and the n-gram model of a stream by name; where memory is short, the unigram alone, and a notice."""
    found: dict[str, Unigram | BackoffTable] = {"unigram": Unigram.train(tokens, vocabulary_size)}
    try:
        found[f"Kneser-Ney {order}-gram"] = train(tokens, vocabulary_size, order)
    except UserError as error:
        notice(f"without the baseline of n-grams: {error}")
    return found


def train_sentences(
    tokens: Ids, vocabulary_size: int, end: int, order: int = 5, thresholds: Sequence[int] = ()
) -> BackoffTable:
    """The model of the sentences of a stream [n], each ended by the word `end`, which is `</s>`.

    `<s>` is word V, so that the table has V + 1 words. n-grams that occur at most as often as the threshold of their
    length are left out, as with `lmplz --prune`: the thresholds never fall, the first is 0, and the last one also
    holds for all greater lengths.
    """
    words = within(tokens, vocabulary_size)
    begins = np.concatenate([[0], np.flatnonzero(words[:-1] == end) + 1])
    words = np.insert(words, begins, vocabulary_size)
    sentence = np.cumsum(words == vocabulary_size)
    markers = Markers(begin=vocabulary_size, end=end)
    return estimate(
        count(words, sentence, vocabulary_size + 1, order, markers), vocabulary_size + 1, markers, thresholds
    )


def count(
    words: Int64s, sentence: Int64s, vocabulary_size: int, order: int, markers: Markers | None = None
) -> list[Counts]:
    """The n-grams within sentences, of all lengths up to `order` or the longest sentence.

    `sentence` [n] numbers the sentence that each of the words [n] belongs to. Raises UserError where there is not
    enough memory for them (`elman.evaluation.ngram.memory`).
    """
    assert len(words) > 0, "there must be something to count"
    assert order > 0, order
    memory.require(len(words), order)
    alone = np.bincount(words, minlength=vocabulary_size)
    levels = [Counts(np.arange(vocabulary_size), alone, alone, np.zeros(vocabulary_size, dtype=np.int64))]
    starts, number = np.arange(len(words)), words
    begins = np.arange(vocabulary_size) == (-1 if markers is None else markers.begin)
    for length in range(2, order + 1):
        starts = starts[: np.searchsorted(starts, len(words) - length + 1)]
        starts = starts[sentence[starts] == sentence[starts + length - 1]]
        if not len(starts):
            break
        keys, first, inverse, occurrences = np.unique(
            number[starts] * vocabulary_size + words[starts + length - 1],
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        # Each distinct n-gram puts one more distinct word in front of the (n - 1)-gram that it ends with.
        suffix = number[starts[first] + 1]
        in_front = np.bincount(suffix, minlength=len(levels[-1].keys))
        levels[-1] = levels[-1]._replace(counts=np.where(begins, levels[-1].occurrences, in_front))
        levels.append(Counts(keys, occurrences, occurrences, suffix))
        begins = begins[keys // vocabulary_size]
        number = np.full(len(words), -1, dtype=np.int64)
        number[starts] = inverse
    if markers is not None:
        levels[0].counts[markers.begin] = 0
    return levels


def estimate(
    counted: Sequence[Counts], vocabulary_size: int, markers: Markers | None = None, thresholds: Sequence[int] = ()
) -> BackoffTable:
    """The table of counts; with thresholds as in `train_sentences`.

    The probability that an n-gram loses by being left out goes to the back-off weight of its context, and the
    discounts count all n-grams, as in `lmplz`.
    """
    predicted = np.ones(vocabulary_size, dtype=bool)
    if markers is not None:
        predicted[markers.begin] = False
    below: Floats = predicted / predicted.sum()
    levels, kept = list[Level](), list[Bools]()
    for length, level in enumerate(counted, start=1):
        context = level.keys // vocabulary_size
        threshold = thresholds[min(length, len(thresholds)) - 1] if thresholds else 0
        keep = level.occurrences > threshold if length > 1 else np.ones(vocabulary_size, dtype=bool)
        taken = np.minimum(discounts(level.counts)[np.minimum(level.counts, 3)], level.counts)
        taken = np.where(keep, taken, level.counts)
        contexts = len(levels[-1].keys) if levels else 1
        total = np.bincount(context, weights=level.counts, minlength=contexts)
        left = np.bincount(context, weights=taken, minlength=contexts)
        weight = np.divide(left, total, out=np.ones(contexts), where=total > 0)
        share = (level.counts - taken) / np.where(total > 0, total, 1.0)[context]
        below = share + weight[context] * (below if length == 1 else below[level.suffix])
        with np.errstate(divide="ignore"):
            if levels:
                levels[-1] = levels[-1]._replace(backoff=np.log(weight))
            levels.append(Level(level.keys, np.log(below), np.zeros(len(level.keys))))
        kept.append(keep)
    table = BackoffTable(levels, vocabulary_size, markers)
    return table if all(mask.all() for mask in kept) else table.keeping(kept)


def discounts(counts: Int64s) -> Floats:
    """D by count (0, 1, 2, 3 and more), from how many n-grams have counts 1 to 4 (Chen & Goodman 1999).

    A discount that would not be positive is half the count (1.5 for three and more); so are all discounts of a level
    that has no n-gram of one of these counts, as in a small text.
    """
    of = np.bincount(np.minimum(counts, 5), minlength=6).astype(np.float64)
    found = np.array([0.0, 0.5, 1.0, 1.5])
    if not of[1:5].all():
        return found
    ratio = of[1] / (of[1] + 2 * of[2])
    for number in (1, 2, 3):
        value = number - (number + 1) * ratio * of[number + 1] / of[number]
        if value > 0:
            found[number] = value
    return found
