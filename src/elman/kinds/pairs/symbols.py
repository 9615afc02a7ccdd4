"""From the text of pairs to ids and back: the tokenisers and the vocabularies of both sides."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elman.data.text import subwords
from elman.data.text.subwords import Subwords
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.utf8 import readable
from elman.data.text.vocabulary import EOS, UNK, Vocabulary
from elman.errors import UserError
from elman.files import sha256_lines, write_atomic
from elman.kinds.pairs.record import PairOptions
from elman.kinds.pairs.table import RawPair

SOURCE_FILE, TARGET_FILE = "source-vocabulary.tsv", "target-vocabulary.tsv"
SOURCE_PIECES, TARGET_PIECES = "source-subwords.model", "target-subwords.model"
"""The models of subwords in a run folder; one that both sides share is `elman.data.text.subwords.FILE`."""


class Unreadable(UserError):  # noqa: N818 - one source of many, which may be left out
    """A source that is too long for a model, or of which its vocabulary has nothing."""

    def __init__(self, line: str, *, too_long: bool) -> None:
        super().__init__(line)
        self.too_long = too_long


@dataclasses.dataclass(frozen=True)
class PairTokenisers:
    """The tokenisers of sources and of targets; of subwords, with their models."""

    source: Tokeniser
    target: Tokeniser

    def source_words(self, text: str) -> list[str]:
        """The symbols of a source as written, in the order of the text; an `<eos>` in it is an unknown word."""
        return _without_end(self.source.encode(text))

    def target_words(self, text: str) -> list[str]:
        return _without_end(self.target.encode(text))

    def shown(self, words: Iterable[str]) -> str:
        """A target's symbols as a line for a reader."""
        return _line(self.target.decode(words))

    def measured(self, words: Sequence[str]) -> str:
        """A target in the form that measures take: the text where symbols spell it, otherwise symbols and spaces."""
        return _line(self.target.text(words))

    def measured_source(self, words: Sequence[str]) -> str:
        return _line(self.source.text(words))


def learn_tokenisers(pairs: Sequence[RawPair], options: PairOptions) -> PairTokenisers:
    """Tokenisers for pairs, with subwords found in these training pairs.

    Raises UserError where sentencepiece is not installed, or the size does not fit the text.
    """
    if options.tokenisation != "subwords":
        return _of(options)
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    texts = [[*sources, *targets]] if options.shared_vocabulary else [sources, targets]
    if options.lowercase:
        texts = [[line.lower() for line in lines] for lines in texts]
    return _of(options, *(subwords.train(lines, options.subwords) for lines in texts))


def _of(options: PairOptions, *models: Subwords) -> PairTokenisers:
    """Tokenisers with the models of subwords of both sides, or the one that they share."""
    source, target = (models[0], models[-1]) if models else (None, None)
    return PairTokenisers(Tokeniser(options.source_text, source), Tokeniser(options.target_text, target))


def _without_end(words: Iterable[str]) -> list[str]:
    return [UNK if word == EOS else word for word in words]


def _line(text: str) -> str:
    """One line of text: a model of bytes may write line breaks, and bytes that are not UTF-8."""
    return readable(text).replace("\r", " ").replace("\n", " ")


@dataclasses.dataclass(frozen=True)
class PairSymbols:
    """The symbols that a model of pairs reads and writes; the target's `<eos>` is the start and the end symbol."""

    source: Vocabulary
    target: Vocabulary
    options: PairOptions
    tokenisers: PairTokenisers

    @classmethod
    def counted(
        cls, pairs: Iterable[RawPair], tokenisers: PairTokenisers, options: PairOptions, name: str
    ) -> "PairSymbols":
        """Vocabularies of training pairs; each has `<unk>`, the target's counts an `<eos>` for every pair.

        Raises UserError where there are too few symbols; `name` names the files in the message.
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
        """The number of target symbols, which the model chooses from."""
        return len(self.target)

    def encode_source(self, text: str, name: str) -> npt.NDArray[np.int32]:
        """The ids of a source [S], for a model to translate; `name` names its place in messages.

        Raises UserError where it is empty, and Unreadable where it is longer than the limit, or has unknown symbols
        only.
        """
        words = self.tokenisers.source_words(text.strip())
        limit = self.options.max_source
        if not words:
            raise UserError(f"{name}: an empty source; every line needs at least one symbol: remove it")
        if len(words) > limit:
            raise Unreadable(
                f"{name}: a source of {len(words)} symbols, the limit is {limit} (data.max_source)", too_long=True
            )
        ids = self.source.encode(words)
        if (ids == self.source.unk).all():
            raise Unreadable(
                f"{name}: none of the {len(words)} symbols is in the source vocabulary; give text in the language and"
                f' the form of the training sources (tokenisation = "{self.options.tokenisation}")',
                too_long=False,
            )
        return ids

    @property
    def digest(self) -> str:
        models = (self.tokenisers.source.subwords, self.tokenisers.target.subwords)
        parts = (self.source, self.target, *models)
        return sha256_lines(*(part.digest for part in parts if part is not None))

    def save(self, folder: Path) -> None:
        ours, theirs = self.tokenisers.source.subwords, self.tokenisers.target.subwords
        named = {subwords.FILE: ours} if ours is theirs else {SOURCE_PIECES: ours, TARGET_PIECES: theirs}
        for name, model in named.items():
            if model is not None:
                write_atomic(folder / name, model.model)
        self.source.save(folder / SOURCE_FILE)
        self.target.save(folder / TARGET_FILE)

    @classmethod
    def load(cls, folder: Path, options: PairOptions) -> "PairSymbols":
        """Read what `save` wrote; raises UserError where a file is missing or damaged, or sentencepiece is missing."""
        names = [subwords.FILE] if options.shared_vocabulary else [SOURCE_PIECES, TARGET_PIECES]
        models = [subwords.load(folder, name) for name in names] if options.tokenisation == "subwords" else []
        source = Vocabulary.load(folder / SOURCE_FILE, needs=(UNK,))
        target = Vocabulary.load(folder / TARGET_FILE, needs=(UNK, EOS))
        return cls(source, target, options, _of(options, *models))


def _pieces(tokeniser: Tokeniser) -> Counter[str]:
    """All subwords, seen or not, since each may be needed to spell a text."""
    return Counter(dict.fromkeys(tokeniser.subwords.pieces if tokeniser.subwords else (), 0))


def _choose(counts: Counter[str], options: PairOptions, what: str, *, add_eos: bool = True) -> Vocabulary:
    min_count = 0 if options.tokenisation == "subwords" else options.min_count
    try:
        return Vocabulary.from_counts(counts, min_count, options.max_vocabulary, add_eos=add_eos, add_unk=True)
    except UserError as error:
        raise UserError(f"{what}: {error}") from None
