"""How often the training split has each word with each tag: the baseline, and which words are known."""

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elman.data.text.utf8 import read_bytes, strict
from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError
from elman.files import sha256_lines, write_atomic

FILE = "lexicon.tsv"  # the lexicon of a run folder


@dataclasses.dataclass(frozen=True)
class Lexicon:
    """The counts of words with their tags in training, by the words as the model reads them.

    The probability of a tag is (c(word, tag) + p_0(tag)) / (c(word) + 1). p_0, the distribution for unknown words,
    is the relative frequency of the tag among words seen once, with add-one smoothing; among all words where none was
    seen once. So the most probable tag of a word is its most frequent one.
    """

    counts: dict[str, Counter[str]]

    @classmethod
    def of(cls, words: Iterable[str], tags: Iterable[str]) -> "Lexicon":
        counts: dict[str, Counter[str]] = {}
        for word, tag in zip(words, tags, strict=True):
            counts.setdefault(word, Counter())[tag] += 1
        return cls(counts)

    def knows(self, words: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Whether training has each word, [n]."""
        return np.array([word in self.counts for word in words], bool)

    def log_probs(self, words: Sequence[str], tags: Vocabulary) -> npt.NDArray[np.float64]:
        """Log-probabilities (nats) of the tags of words, each by itself, [n, L]."""
        unknown, known = self._unknown(tags), dict[str, npt.NDArray[np.float64]]()
        for word in dict.fromkeys(words):
            if word in self.counts:
                counted = _counted(self.counts[word], tags)
                known[word] = (counted + unknown) / (counted.sum() + 1)
        return np.log(np.stack([known.get(word, unknown) for word in words]))

    def _unknown(self, tags: Vocabulary) -> npt.NDArray[np.float64]:
        once = Counter(tag for tagged in self.counts.values() if tagged.total() == 1 for tag in tagged)
        every = Counter[str]()
        for tagged in self.counts.values() if not once else ():
            every.update(tagged)
        counted = 1 + _counted(once or every, tags)
        return counted / counted.sum()

    @functools.cached_property
    def digest(self) -> str:
        return sha256_lines(self._table())

    def save(self, folder: Path) -> None:
        """Write one `word TAB tag TAB count` per line into a run folder."""
        write_atomic(folder / FILE, self._table())

    @classmethod
    def load(cls, folder: Path) -> "Lexicon":
        """Read what `save` wrote; raises UserError where the file is missing or damaged."""
        path = folder / FILE
        lines = strict(read_bytes(path, "a run folder keeps the words of the training split here"), str(path))
        counts: dict[str, Counter[str]] = {}
        for number, line in enumerate(lines.removesuffix("\n").split("\n"), start=1):
            word, _, rest = line.partition("\t")
            tag, _, count = rest.partition("\t")
            if not (word and tag and count.isascii() and count.isdecimal() and 0 < len(count) < 19):
                raise UserError(f"{path}:{number}: expected a word, its tag and a count, found {line!r}")
            counts.setdefault(word, Counter())[tag] += int(count)
        return cls(counts)

    def _table(self) -> str:
        lines = (f"{word}\t{tag}\t{n}\n" for word, tagged in self.counts.items() for tag, n in tagged.items())
        return "".join(lines)


def _counted(counts: Counter[str], tags: Vocabulary) -> npt.NDArray[np.float64]:
    return np.array([counts[tag] for tag in tags.words], np.float64)
