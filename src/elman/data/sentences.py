"""Sentences whose words or phrases have labels: both vocabularies."""

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from elman.config.record import Record
from elman.data.text.fitting import Piece
from elman.data.text.lacking import Tally
from elman.data.text.sources import Corpus
from elman.data.text.vocabulary import UNK, Vocabulary
from elman.files import canonical_json, sha256_lines

Ids = npt.NDArray[np.integer]

PARENTHESES = {"(": "-LRB-", ")": "-RRB-"}
"""How the Penn Treebank writes parentheses among words, since plain ones are the brackets of trees."""


@dataclasses.dataclass(frozen=True)
class LabelledSymbols:
    """The words that a model reads and the labels that it chooses from, `<unk>` among both.

    `WORDS_FILE` and `LABELS_FILE` hold them in a run folder.
    """

    WORDS_FILE: ClassVar[str] = "vocabulary.tsv"
    LABELS_FILE: ClassVar[str] = "labels.tsv"

    words: Vocabulary
    labels: Vocabulary
    options: Any

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def unknown_label(self) -> int:
        return self.labels.ids[UNK]

    @property
    def digest(self) -> str:
        return sha256_lines(self.words.digest, self.labels.digest)

    def folded(self, words: Sequence[str]) -> list[str]:
        """The words as the model reads them.

        A parenthesis that the vocabulary lacks is the token of the Penn Treebank for it (`-LRB-`), if it has that.
        """
        known, found = self.words.ids, []
        for word in self._cased(words):
            token = self._cased([PARENTHESES[word]])[0] if word in PARENTHESES and word not in known else word
            found.append(token if token in known else word)
        return found

    def tally(self, sentences: Iterable[Sequence[str]]) -> Tally:
        """What the vocabulary lacks of the words of sentences, and what is read otherwise than it stands."""
        found = Tally()
        for words in sentences:
            for word, read in zip(self._cased(words), self.folded(words), strict=True):
                found.add(word, (Piece(word, read, unknown=read not in self.words.ids),), fitted=True)
        return found

    def _cased(self, words: Sequence[str]) -> list[str]:
        return [word.lower() for word in words] if self.options.lowercase else list(words)

    def encode(self, words: Sequence[str]) -> npt.NDArray[np.int32]:
        """The ids of the words of a sentence."""
        return self.words.encode(self.folded(words))

    def save(self, folder: Path) -> None:
        self.words.save(folder / self.WORDS_FILE)
        self.labels.save(folder / self.LABELS_FILE)

    @classmethod
    def load_vocabularies(cls, folder: Path, *needed: str) -> tuple[Vocabulary, Vocabulary]:
        """Words and labels as `save` wrote them; raises UserError where a file or a `needed` label is missing."""
        words = Vocabulary.load(folder / cls.WORDS_FILE, needs=(UNK,))
        return words, Vocabulary.load(folder / cls.LABELS_FILE, needs=(*needed, UNK))


OptionsT = TypeVar("OptionsT", bound=Record)


@dataclasses.dataclass(frozen=True)
class LabelledSplit:
    """The words of the sentences of a split, as they stand and as ids; `facts` holds counts."""

    name: str
    sentences: list[list[str]]
    ids: list[npt.NDArray[np.int32]]
    facts: dict[str, int]

    def __len__(self) -> int:
        return len(self.sentences)

    @functools.cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of words of each sentence, [n]."""
        return np.array([len(words) for words in self.sentences], np.int64)


SplitT = TypeVar("SplitT", bound=LabelledSplit)


@dataclasses.dataclass(frozen=True, eq=False)
class LabelledCorpus(Corpus[OptionsT, SplitT]):
    """Sentences with labels as a model reads them; `sha256` are the digests of the files by their names."""

    symbols: Any
    sha256: dict[str, str]

    @property
    def digest(self) -> str:
        return sha256_lines(self.symbols.digest, canonical_json(self.options), *map(" ".join, self.sha256.items()))

    def facts(self) -> dict[str, Any]:
        sizes = {"words": self.symbols.words, Path(self.symbols.LABELS_FILE).stem: self.symbols.labels}
        return {
            "vocabulary": {name: {"size": len(one), "digest": one.digest} for name, one in sizes.items()},
            "splits": {name: split.facts for name, split in self.splits.items()},
            "files": self.sha256,
        }
