"""Between the text of a pair and ids: two vocabularies and the rules of a recipe."""

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elman.data.pair_files import RawPair
from elman.data.pair_options import PairOptions
from elman.data.pair_tokenisers import PairTokenisers, load_tokenisers
from elman.data.tokeniser import Tokeniser
from elman.data.vocabulary import EOS, Vocabulary
from elman.errors import UserError

SOURCE_FILE, TARGET_FILE = "source-vocabulary.tsv", "target-vocabulary.tsv"


@dataclasses.dataclass(frozen=True)
class PairSymbols:
    """What a model of pairs reads and writes.

    Attributes:
        source: the vocabulary of sources.
        target: the vocabulary of targets; its `<eos>` is the start and the end symbol.
        options: the rules.
        tokenisers: between texts and symbols.

    """

    source: Vocabulary
    target: Vocabulary
    options: PairOptions
    tokenisers: PairTokenisers

    @classmethod
    def counted(
        cls, pairs: Iterable[RawPair], tokenisers: PairTokenisers, options: PairOptions, name: str
    ) -> "PairSymbols":
        """Vocabularies of training pairs; each has `<unk>`, the target's counts an `<eos>` for every pair.

        Raises:
            UserError: too few symbols; `name` says of which files.

        """
        ours, theirs = _pieces(tokenisers.source), _pieces(tokenisers.target)
        for pair in pairs:
            ours.update(tokenisers.source_words(pair.source))
            theirs.update(tokenisers.target_words(pair.target))
            theirs[EOS] += 1
        if options.shared_vocabulary:
            for word, count in theirs.items():  # a sum of counters would lose pieces that were never seen
                ours[word] += count
            both = _choose(ours, options, f"{name}: both sides")
            return cls(both, both, options, tokenisers)
        source = _choose(ours, options, f"{name}: the sources", add_eos=False)
        return cls(source, _choose(theirs, options, f"{name}: the targets"), options, tokenisers)

    def __len__(self) -> int:
        """How many symbols the model chooses from: those of the target."""
        return len(self.target)

    def source_words(self, text: str) -> list[str]:
        """The symbols of a source as they are written, unknown ones too, in the order of the text."""
        return self.tokenisers.source_words(text)

    def target_words(self, text: str) -> list[str]:
        """The symbols of a target as they are written."""
        return self.tokenisers.target_words(text)

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

    @property
    def digest(self) -> str:
        """The SHA-256 of both vocabularies and of the models of subwords."""
        parts = [self.source.digest, self.target.digest, *self.tokenisers.digests]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def save(self, folder: Path) -> None:
        """Write both vocabularies, and models of subwords, into a run folder."""
        self.tokenisers.save(folder)
        self.source.save(folder / SOURCE_FILE)
        self.target.save(folder / TARGET_FILE)

    @classmethod
    def load(cls, folder: Path, options: PairOptions) -> "PairSymbols":
        """Read what `save` wrote.

        Raises:
            UserError: a file is missing or damaged.

        """
        tokenisers = load_tokenisers(folder, options)
        source, target = (Vocabulary.load(folder / name) for name in (SOURCE_FILE, TARGET_FILE))
        return cls(source, target, options, tokenisers)


def _pieces(tokeniser: Tokeniser) -> Counter[str]:
    """Of subwords all that there are, seen or not, since each may be needed to spell a text."""
    return Counter(dict.fromkeys(tokeniser.subwords.pieces if tokeniser.subwords else (), 0))


def _choose(counts: Counter[str], options: PairOptions, what: str, *, add_eos: bool = True) -> Vocabulary:
    min_count = 0 if options.tokenisation == "subwords" else options.min_count
    try:
        return Vocabulary.from_counts(counts, min_count, options.max_vocabulary, add_eos=add_eos, add_unk=True)
    except UserError as error:
        raise UserError(f"{what}: {error}") from None
