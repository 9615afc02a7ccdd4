"""Between the text of a pair and ids: two vocabularies and the rules of a recipe."""

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elman.data.detokenise import detokenise
from elman.data.pair_options import PairOptions
from elman.data.tokeniser import tokenise
from elman.data.vocabulary import EOS, UNK, Vocabulary
from elman.errors import UserError

SOURCE_FILE, TARGET_FILE = "source-vocabulary.tsv", "target-vocabulary.tsv"


@dataclasses.dataclass(frozen=True)
class PairSymbols:
    """What a model of pairs reads and writes.

    Attributes:
        source: the vocabulary of sources.
        target: the vocabulary of targets; its `<eos>` is the start and the end symbol.
        options: the rules.

    """

    source: Vocabulary
    target: Vocabulary
    options: PairOptions

    @classmethod
    def counted(
        cls, sources: Iterable[list[str]], targets: Iterable[list[str]], options: PairOptions, name: str
    ) -> "PairSymbols":
        """Vocabularies of tokenised training pairs; each has `<unk>`, the target's counts an `<eos>` for every pair.

        Raises:
            UserError: too few symbols; `name` says of which files.

        """
        ours: Counter[str] = Counter()
        theirs: Counter[str] = Counter()
        for words in sources:
            ours.update(words)
        for words in targets:
            theirs.update(words)
            theirs[EOS] += 1
        if options.shared_vocabulary:
            both = _choose(ours + theirs, options, f"{name}: both sides")
            return cls(both, both, options)
        source = _choose(ours, options, f"{name}: the sources", add_eos=False)
        return cls(source, _choose(theirs, options, f"{name}: the targets"), options)

    def __len__(self) -> int:
        """How many symbols the model chooses from: those of the target."""
        return len(self.target)

    def source_words(self, text: str) -> list[str]:
        """The symbols of a source as they are written, unknown ones too, in the order of the text."""
        return _tokens(text, self.options)

    def target_words(self, text: str) -> list[str]:
        """The symbols of a target as they are written."""
        return target_tokens(text, self.options)

    def encode_source(self, text: str, name: str) -> npt.NDArray[np.int32]:
        """The ids of a source [S], for a model to transduce; `name` says where it stands.

        Raises:
            UserError: it is empty, longer than the limit, or has unknown symbols only.

        """
        words = self.source_words(text.strip())
        limit = self.options.max_source
        if not words:
            raise UserError(f"{name}: an empty source; every line needs at least one symbol: remove it")
        if len(words) > limit:
            raise UserError(f"{name}: a source of {len(words)} symbols, the limit is {limit} (data.pairs.max_source)")
        ids = self.source.encode(words)
        if (ids == self.source.unk).all():
            raise UserError(
                f"{name}: none of the {len(words)} symbols is in the source vocabulary; give text in the language and"
                f' the form of the training sources (tokenisation = "{self.options.tokenisation}")'
            )
        return ids

    def written(self, ids: Iterable[int]) -> str:
        """A target without its end symbol as text for a reader."""
        return detokenise([word for word in self.target.decode(ids) if word != EOS], self.options.text)

    @property
    def digest(self) -> str:
        """The SHA-256 of both vocabularies."""
        return hashlib.sha256(f"{self.source.digest}\n{self.target.digest}".encode()).hexdigest()

    def save(self, folder: Path) -> None:
        """Write both vocabularies into a run folder."""
        self.source.save(folder / SOURCE_FILE)
        self.target.save(folder / TARGET_FILE)

    @classmethod
    def load(cls, folder: Path, options: PairOptions) -> "PairSymbols":
        """Read what `save` wrote.

        Raises:
            UserError: a file is missing or damaged.

        """
        return cls(Vocabulary.load(folder / SOURCE_FILE), Vocabulary.load(folder / TARGET_FILE), options)


def source_tokens(text: str, options: PairOptions) -> list[str]:
    """The symbols of a source."""
    return _tokens(text, options)


def target_tokens(text: str, options: PairOptions) -> list[str]:
    """The symbols of a target; the labels of trees keep their capitals."""
    return text.split() if options.form == "trees" else _tokens(text, options)


def _tokens(text: str, options: PairOptions) -> list[str]:
    return [UNK if word == EOS else word for word in tokenise(text, options.text)]


def _choose(counts: Counter[str], options: PairOptions, what: str, *, add_eos: bool = True) -> Vocabulary:
    try:
        return Vocabulary.from_counts(counts, options.min_count, options.max_vocabulary, add_eos=add_eos, add_unk=True)
    except UserError as error:
        raise UserError(f"{what}: {error}") from None
