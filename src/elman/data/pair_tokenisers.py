"""Between the texts of a pair and symbols; of subwords, with the models of both sides."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from elman.data import subwords as units
from elman.data.bytewise import readable
from elman.data.pair_files import RawPair
from elman.data.pair_options import PairOptions
from elman.data.subwords import Subwords
from elman.data.tokeniser import Tokeniser
from elman.data.vocabulary import EOS, UNK
from elman.files import write_atomic

SOURCE_FILE, TARGET_FILE = "source-subwords.model", "target-subwords.model"
"""The models of subwords in a run folder; one that both sides share is `elman.data.subwords.FILE`."""


@dataclasses.dataclass(frozen=True)
class PairTokenisers:
    """The symbols of both sides.

    Attributes:
        source: of sources.
        target: of targets.

    """

    source: Tokeniser
    target: Tokeniser

    def source_words(self, text: str) -> list[str]:
        """The symbols of a source in the order of the text; an `<eos>` in it is an unknown word."""
        return _without_end(self.source.encode(text))

    def target_words(self, text: str) -> list[str]:
        """The symbols of a target."""
        return _without_end(self.target.encode(text))

    def shown(self, words: Iterable[str]) -> str:
        """A target's symbols as a line for a reader."""
        return _line(self.target.decode(words))

    def measured(self, words: Sequence[str]) -> str:
        """A target in the form that measures take: the text where symbols spell it, else they at single spaces."""
        return _line(self.target.text(words))

    def measured_source(self, words: Sequence[str]) -> str:
        """The same of a source."""
        return _line(self.source.text(words))

    @property
    def digests(self) -> list[str]:
        """The SHA-256 of the models of subwords, of the source's and of the target's."""
        return [one.subwords.digest for one in (self.source, self.target) if one.subwords is not None]

    def save(self, folder: Path) -> None:
        """Write the models of subwords, if there are any, into a run folder."""
        ours, theirs = self.source.subwords, self.target.subwords
        if ours is None or theirs is None:
            return
        named = {units.FILE: ours} if ours is theirs else {SOURCE_FILE: ours, TARGET_FILE: theirs}
        for name, model in named.items():
            write_atomic(folder / name, model.model)


def load_tokenisers(folder: Path, options: PairOptions) -> PairTokenisers:
    """Those of a run folder.

    Raises:
        UserError: a model of subwords is missing or damaged, or sentencepiece is not installed.

    """
    if options.tokenisation != "subwords":
        return _of(options)
    if options.shared_vocabulary:
        both = units.load(folder)
        return _of(options, both, both)
    return _of(options, units.load(folder, SOURCE_FILE), units.load(folder, TARGET_FILE))


def learn_tokenisers(pairs: Sequence[RawPair], options: PairOptions) -> PairTokenisers:
    """Tokenisers for pairs, with subwords found in these, which are those of training.

    Raises:
        UserError: sentencepiece is not installed, or the size does not fit the text.

    """
    if options.tokenisation != "subwords":
        return _of(options)
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    if options.shared_vocabulary:
        both = _train([*sources, *targets], options)
        return _of(options, both, both)
    return _of(options, _train(sources, options), _train(targets, options))


def _train(lines: Sequence[str], options: PairOptions) -> Subwords:
    read: Iterable[str] = (line.lower() for line in lines) if options.lowercase else lines
    return units.train(read, options.subwords, "data.pairs.subwords")


def _of(options: PairOptions, source: Subwords | None = None, target: Subwords | None = None) -> PairTokenisers:
    return PairTokenisers(Tokeniser(options.source_text, source), Tokeniser(options.target_text, target))


def _without_end(words: Iterable[str]) -> list[str]:
    return [UNK if word == EOS else word for word in words]


def _line(text: str) -> str:
    """One line of text: a model of bytes may write line breaks, and bytes that are no text."""
    return readable(text).replace("\r", " ").replace("\n", " ")
