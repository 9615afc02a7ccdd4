"""Sentences whose words or phrases have labels: both vocabularies, and sentences of similar length side by side."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from elman.data.batches import Batch
from elman.data.pairs.batches import by_length, shuffled
from elman.data.pairs.trees import PARENTHESES
from elman.data.text.fitting import Piece
from elman.data.text.tally import Tally
from elman.data.text.vocabulary import UNK, Vocabulary
from elman.data.windows import Span
from elman.files import sha256_lines

Ids = npt.NDArray[np.integer]
Lengths = npt.NDArray[np.int64]
"""Of sentences, in words, [n]."""


class Folding(Protocol):
    """Options which state whether capitals of words are folded."""

    @property
    def lowercase(self) -> bool:
        """Whether they are."""


@dataclasses.dataclass(frozen=True)
class LabelledSymbols:
    """The words that a model reads and the labels that it chooses from, `<unk>` among both.

    `WORDS_FILE` and `LABELS_FILE` hold them in a run folder.
    """

    WORDS_FILE: ClassVar[str] = "vocabulary.tsv"
    LABELS_FILE: ClassVar[str] = "labels.tsv"

    words: Vocabulary
    labels: Vocabulary
    options: Folding

    def __len__(self) -> int:
        """The number of labels."""
        return len(self.labels)

    @property
    def unknown_label(self) -> int:
        """The id of labels that are too rare."""
        return self.labels.ids[UNK]

    @property
    def digest(self) -> str:
        """The SHA-256 of both vocabularies."""
        return sha256_lines(self.words.digest, self.labels.digest)

    def folded(self, words: Sequence[str]) -> list[str]:
        """The words as the model reads them.

        A parenthesis that the vocabulary lacks is the token of the Penn Treebank for it (`-LRB-`), if it has that.
        """
        return [self._read(word) for word in self._cased(words)]

    def tally(self, sentences: Iterable[Sequence[str]]) -> Tally:
        """What the vocabulary lacks of the words of sentences, and what is read otherwise than it stands."""
        found = Tally()
        for words in sentences:
            for word, read in zip(self._cased(words), self.folded(words), strict=True):
                found.add(word, (Piece(word, read, unknown=read not in self.words.ids),), fitted=True)
        return found

    def _cased(self, words: Sequence[str]) -> list[str]:
        return [word.lower() for word in words] if self.options.lowercase else list(words)

    def _read(self, word: str) -> str:
        if word not in PARENTHESES or word in self.words.ids:
            return word
        (token,) = self._cased([PARENTHESES[word]])
        return token if token in self.words.ids else word

    def encode(self, words: Sequence[str], more: dict[str, int] | None = None) -> npt.NDArray[np.int32]:
        """The ids of the words of a sentence; `more` are those of words that the vocabulary lacks."""
        folded = self.folded(words)
        ids = self.words.encode(folded)
        if more:
            known = self.words.ids
            ids = np.array(
                [one if word in known else more.get(word, one) for word, one in zip(folded, ids, strict=True)]
            )
        return ids

    def save(self, folder: Path) -> None:
        """Write both vocabularies into a run folder."""
        self.words.save(folder / self.WORDS_FILE)
        self.labels.save(folder / self.LABELS_FILE)

    @classmethod
    def load_vocabularies(cls, folder: Path, *needed: str) -> tuple[Vocabulary, Vocabulary]:
        """Words and labels as `save` wrote them; raises UserError where a file or a `needed` label is missing."""
        words = Vocabulary.load(folder / cls.WORDS_FILE, needs=(UNK,))
        return words, Vocabulary.load(folder / cls.LABELS_FILE, needs=(*needed, UNK))


class SentenceWindows:
    """Sentences of similar length side by side, every one once per epoch.

    `gather` puts the sentences at some places side by side. The batches of an epoch depend on the seed and the epoch's
    number alone, so a resumed run needs only its position.
    """

    def __init__(self, lengths: Lengths, gather: Callable[[list[int]], Batch], batch_size: int, seed: int) -> None:
        self.lengths, self.gather, twice = lengths, gather, np.stack([lengths, lengths])
        self._batches = functools.lru_cache(1)(lambda epoch: shuffled(twice, seed, epoch, batch_size=batch_size))

    def spans(self, epoch: int) -> list[Span]:
        """One for every batch, as long as its longest sentence."""
        batches = enumerate(self._batches(epoch))
        return [Span(place, int(self.lengths[indices].max()), epoch) for place, indices in batches]

    def batch(self, span: Span) -> Batch:
        """The batch of a span."""
        return self.gather(self._batches(span.epoch)[span.start])


def in_batches(lengths: Lengths, batch_size: int) -> list[list[int]]:
    """All sentences once, those of similar length together, the short ones first."""
    return by_length(np.stack([lengths, lengths]), batch_size=batch_size)
