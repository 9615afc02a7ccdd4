"""n-grams with their probabilities and back-off weights as sorted arrays: every look-up is a binary search.

p(w | h) stands in the table where it has the n-gram h w, and otherwise backoff(h) p(w | h'), where h' is h without
its first word and backoff(h) is 1 where the table lacks h. An n-gram is numbered by its place among the sorted keys
(number of its first n - 1 words) * V + (its last word); the number of a single word is its id. No [V, V] table exists,
and a stream is scored with one search per word and level.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[Any]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

NOTHING = -1  # in a context: no word, as before the beginning of a text; no n-gram of the table has it


class Level(NamedTuple):
    """The n-grams of one length.

    Attributes:
        keys: sorted, [U]; of single words 0 to V - 1.
        log_prob: natural logarithms of p(last word | first n - 1 words), [U].
        backoff: natural logarithms of the weights of the n-grams as contexts, [U]; 0 at the greatest length.
    """

    keys: Int64s
    log_prob: Floats
    backoff: Floats


class Markers(NamedTuple):
    """The ids of `<s>`, which is only read, and of `</s>`, which is only predicted; after it the context is `<s>`."""

    begin: int
    end: int


def shifted(number: Int64s) -> Int64s:
    """What stands before each place [..., n]: `NOTHING` before the first."""
    before = np.full_like(number, NOTHING)
    before[..., 1:] = number[..., :-1]
    return before


class BackoffTable:
    """An n-gram model of V words given by its n-grams of each length, single words first.

    With `markers` a stream is read sentence by sentence. Without them contexts run across the ends of sentences,
    which are an ordinary word.
    """

    def __init__(self, levels: Sequence[Level], vocabulary_size: int, markers: Markers | None = None) -> None:
        assert len(levels[0].keys) == vocabulary_size, "every word is a unigram"
        self.levels, self.vocabulary_size, self.markers = tuple(levels), vocabulary_size, markers

    @property
    def order(self) -> int:
        """How many words the longest n-gram has."""
        return len(self.levels)

    def log_prob(self, tokens: Ids, history: Ids | Sequence[int] = ()) -> Floats:
        """The natural logarithm of the probability of each token, [n]; `history` precedes the first.

        At most order - 1 words of the history matter.
        """
        before = np.asarray(history, dtype=np.int64)[max(0, len(history) - self.order + 1) :]
        words = within(np.concatenate([before, np.asarray(tokens, dtype=np.int64)]), self.vocabulary_size)
        return self.score(words, self.as_read(words))[0][len(before) :]

    def as_read(self, words: Int64s) -> Int64s:
        """The words as contexts have them: `<s>` in place of `</s>`."""
        return words if self.markers is None else np.where(words == self.markers.end, self.markers.begin, words)

    def score(self, words: Int64s, read: Int64s) -> tuple[Floats, Int64s]:
        """The log-probability of each word [..., n] after the words read before it, and the length of its n-gram.

        `read` [..., n] are the words as they are read; those that are `NOTHING` are in no context.
        """
        log_prob = self.levels[0].log_prob[words]
        length = np.ones(words.shape, dtype=np.int64)
        for above, (context, found) in enumerate(self._walk(read, words)):
            here, below, seen = self.levels[above + 1], self.levels[above], found >= 0
            backed_off = log_prob + np.where(context >= 0, below.backoff[context], 0.0)
            log_prob = np.where(seen, here.log_prob[found], backed_off) if seen.any() else backed_off
            length[seen] = above + 2
        return log_prob, length

    def contexts(self, read: Int64s) -> list[Int64s]:
        """The numbers of the m-grams that end at each place of words that are read [..., n], for m = 1 to order - 1.

        A number is -1 where the table lacks the m-gram.
        """
        return [read, *(found for _, found in self._walk(read, read, len(self.levels) - 1))][: len(self.levels) - 1]

    def log_probs(self, context: Sequence[int]) -> Floats:
        """The log-probabilities [V] of all words after a context, given its numbers as `contexts` has them."""
        found = self.levels[0].log_prob.copy()
        for below, level, number in zip(self.levels, self.levels[1:], context, strict=False):
            if number < 0:
                continue
            found += below.backoff[number]
            first = number * self.vocabulary_size
            low, high = np.searchsorted(level.keys, [first, first + self.vocabulary_size])
            found[level.keys[low:high] - first] = level.log_prob[low:high]
        return found

    def rows(self, length: int, part: slice = slice(None)) -> Int64s:
        """The words of the n-grams of a length [U, length], or of a part of them."""
        numbers = np.arange(len(self.levels[length - 1].keys))[part]
        words = np.empty((len(numbers), length), dtype=np.int64)
        for place in range(length - 1, -1, -1):
            numbers, words[:, place] = np.divmod(self.levels[place].keys[numbers], self.vocabulary_size)
        return words

    def find(self, length: int, context: Int64s, words: Int64s) -> Int64s:
        """The numbers of n-grams of a length, given the numbers of their first words and their last words.

        -1 where the table lacks the n-gram, as after the context -1.
        """
        keys = self.levels[length - 1].keys
        found = np.full(words.shape, -1, dtype=np.int64)
        places = np.nonzero((context >= 0) & (words >= 0))
        if len(keys) == 0 or len(places[0]) == 0:
            return found
        wanted = context[places] * self.vocabulary_size + words[places]
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        found[places] = np.where(keys[at] == wanted, at, -1)
        return found

    def keeping(self, kept: Sequence[Bools]) -> "BackoffTable":
        """The table with some of its n-grams: one mask [U] for each level, all of the words among them.

        The first words of an n-gram that is kept are kept.
        """
        levels, numbers = list[Level](), np.zeros(1, dtype=np.int64)
        for level, mask in zip(self.levels, kept, strict=True):
            context, last = np.divmod(level.keys[mask], self.vocabulary_size)
            assert (numbers[context] >= 0).all(), "an n-gram without its context"
            keys = numbers[context] * self.vocabulary_size + last
            levels.append(Level(keys, level.log_prob[mask], level.backoff[mask]))
            numbers = np.where(mask, np.cumsum(mask) - 1, -1)
        while len(levels) > 1 and not len(levels[-1].keys):
            levels.pop()
        levels[-1] = levels[-1]._replace(backoff=np.zeros_like(levels[-1].backoff))
        return BackoffTable(levels, self.vocabulary_size, self.markers)

    def _walk(self, read: Int64s, words: Int64s, most: int | None = None) -> Iterator[tuple[Int64s, Int64s]]:
        """For each length from 2 on: the number of what is read before each word, and of both together."""
        number, differs = read, read != words
        for length in range(2, 1 + (len(self.levels) if most is None else most)):
            context = shifted(number)
            found = self.find(length, context, words)
            yield context, found
            number = found
            if length < len(self.levels) and differs.any():
                number = found.copy()
                number[differs] = self.find(length, context[differs], read[differs])


def within(tokens: Ids, vocabulary_size: int) -> Int64s:
    """Tokens as they are counted and looked up; one outside the vocabulary would share its key with another n-gram."""
    words = np.asarray(tokens, dtype=np.int64)
    assert words.size == 0 or (words.min() >= 0 and words.max() < vocabulary_size), "a word outside the vocabulary"
    return words
