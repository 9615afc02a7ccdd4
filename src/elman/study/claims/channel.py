"""A noisy channel that makes n-best lists of sentences, in place of a recogniser.

Every word is heard as a score of each candidate: itself and its neighbours in spelling. The score is minus a distance
in spelling, plus normal noise; a hypothesis has the sum of the scores of its words, and the n best are listed. The
lists depend on no language model, so that several models rescore the same ones.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[Any]


class Channel(NamedTuple):
    """How words are confused.

    Attributes:
        neighbours: the most candidates beside the word itself.
        nearest: the least overlap in spelling that a neighbour has (Dice coefficient of letter pairs, 0 to 1).
        distance: what an overlap of 0 would take from a score.
        noise: the standard deviation of the scores' noise.
        size: hypotheses in a list.
    """

    neighbours: int = 8
    nearest: float = 0.3
    distance: float = 6.0
    noise: float = 1.0
    size: int = 20


class Heard(NamedTuple):
    """One hypothesis: its words and its score, the higher the better."""

    ids: tuple[int, ...]
    score: float


def letter_pairs(words: Sequence[str]) -> npt.NDArray[np.float32]:
    """How often each pair of letters stands in each word, [words, pairs]; ends of words count as letters."""
    counts: dict[tuple[int, str], int] = {}
    numbers: dict[str, int] = {}
    for row, word in enumerate(words):
        marked = f"^{word}$"
        for pair in (marked[at : at + 2] for at in range(len(marked) - 1)):
            numbers.setdefault(pair, len(numbers))
            counts[row, pair] = counts.get((row, pair), 0) + 1
    table = np.zeros((len(words), len(numbers)), dtype=np.float32)
    for (row, pair), count in counts.items():
        table[row, numbers[pair]] = count
    return table


class Confusion:
    """The candidates of each word of a vocabulary; words in `without`, such as `<unk>`, are candidates of nothing.

    Example:
        >>> confusion = Confusion(["heart", "hearth", "earth", "sea"], Channel())
        >>> ids, overlap = confusion.candidates(0)
        >>> ids.tolist(), overlap.round(2).tolist()
        ([0, 1, 2], [1.0, 0.77, 0.5])
    """

    def __init__(self, words: Sequence[str], channel: Channel, without: Sequence[int] = ()) -> None:
        self.words, self.channel, self.without = words, channel, list(without)
        self._pairs = letter_pairs(words)
        self._lengths = self._pairs.sum(1)
        self._known: dict[int, tuple[Ids, npt.NDArray[np.float64]]] = {}

    def candidates(self, word: int) -> tuple[Ids, npt.NDArray[np.float64]]:
        """The word and its neighbours, the nearest first, and the overlap of each with it."""
        if word not in self._known:
            shared = np.minimum(self._pairs, self._pairs[word]).sum(1)
            overlap = (2 * shared / (self._lengths + self._lengths[word])).astype(np.float64)
            overlap[self.without] = 0.0
            overlap[word] = 2.0  # itself first, whatever is spelt alike
            order = np.argsort(-overlap, kind="stable")[: self.channel.neighbours + 1]
            kept = order[overlap[order] >= self.channel.nearest]
            self._known[word] = kept, np.minimum(overlap[kept], 1.0)
        return self._known[word]

    def hear(self, sentence: Sequence[int], draw: np.random.Generator) -> list[Heard]:
        """The n best hypotheses of a sentence, the best first."""
        said, totals = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
        for word in sentence:
            ids, overlap = self.candidates(int(word))
            scores = self.channel.distance * (overlap - 1) + draw.normal(0, self.channel.noise, len(ids))
            sums = (totals[:, None] + scores).ravel()
            kept = np.argsort(-sums, kind="stable")[: self.channel.size]
            beginning, last = np.divmod(kept, len(ids))
            said, totals = np.column_stack([said[beginning], ids[last]]), sums[kept]
        return [Heard(tuple(row), score) for row, score in zip(said.tolist(), totals.tolist(), strict=True)]
