"""A corpus of pairs: sources and targets as ids, and the batches that training reads."""

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from elman.config.pairs import PairOptions
from elman.config.text import identity
from elman.data.pairs.batches import Sequences, by_length, shuffled, side_by_side
from elman.data.pairs.files import RawPair, cut, find_files, read_pairs
from elman.data.pairs.symbols import PairSymbols, PairTokenisers, learn_tokenisers
from elman.data.text.sources import require_split
from elman.data.text.vocabulary import UNK, Vocabulary
from elman.data.windows import Batch, Span
from elman.errors import UserError
from elman.files import sha256_file, sha256_lines


@dataclasses.dataclass(frozen=True)
class Pairs:
    """A split: sources in the order of the text, targets without start and end symbols, both as ids and as text.

    `facts` holds counts: pairs left out, sources cut, symbols of both sides, unknown ones, characters of the targets.
    """

    name: str
    source: Sequences
    target: Sequences
    source_text: list[str]
    target_text: list[str]
    facts: dict[str, int]

    def __len__(self) -> int:
        return len(self.source)


@dataclasses.dataclass(frozen=True)
class PairCorpus:
    """Pairs as a model reads them."""

    name: str
    source: str
    options: PairOptions
    symbols: PairSymbols
    splits: dict[str, Pairs]
    sha256: dict[str, str]

    @property
    def source_vocabulary(self) -> Vocabulary:
        """Of the sources."""
        return self.symbols.source

    @property
    def target_vocabulary(self) -> Vocabulary:
        """Of the targets."""
        return self.symbols.target

    def split(self, name: str) -> Pairs:
        """The split of this name; raises UserError where the corpus does not have it."""
        return require_split(self.splits, name, self.source)

    def buckets(
        self,
        pairs: Pairs,
        *,
        batch_size: int | None = None,
        tokens_per_batch: int | None = None,
        seed: int = 0,
        epoch: int | None = None,
    ) -> list[list[int]]:
        """Places of the pairs of each batch: shuffled by seed and epoch, or without an epoch by length alone."""
        lengths = np.stack([pairs.source.lengths, pairs.target.lengths + 1])
        if epoch is None:
            return by_length(lengths, batch_size, tokens_per_batch)
        return shuffled(lengths, batch_size, tokens_per_batch, seed, epoch)

    def gather(self, pairs: Pairs, indices: list[int]) -> Batch:
        """The pairs at these places, side by side; sources reversed where the options ask for it."""
        sources, targets = ([side[index] for index in indices] for side in (pairs.source, pairs.target))
        return side_by_side(sources, targets, self.symbols)

    @property
    def digest(self) -> str:
        """SHA-256 over the vocabularies, the files and the options."""
        return sha256_lines(self.symbols.digest, identity(self.options), *map(" ".join, self.sha256.items()))

    def describe(self) -> dict[str, Any]:
        """The record that a run keeps of its data, for JSON."""
        sizes = {"source": self.source_vocabulary, "target": self.target_vocabulary}
        return {
            "name": self.name,
            "source": self.source,
            **msgspec.to_builtins(self.options),
            "vocabulary": {side: {"size": len(one), "digest": one.digest} for side, one in sizes.items()},
            "splits": {name: pairs.facts for name, pairs in self.splits.items()},
            "files": self.sha256,
            "digest": self.digest,
        }


class PairWindows:
    """Pairs of similar length side by side, every pair once per epoch; each batch begins and ends its targets.

    The batches of an epoch depend on the seed and the epoch's number alone, so a resumed run needs only its position. A
    batch has `batch_size` pairs, or, where `tokens` is set, at most so many symbols, padding and both sides together.
    """

    def __init__(self, corpus: PairCorpus, pairs: Pairs, batch_size: int, tokens: int | None, seed: int) -> None:
        self.corpus, self.pairs, self.seed = corpus, pairs, seed
        self.batch_size, self.tokens = (None if tokens else batch_size), tokens
        self._laid: tuple[int, list[list[int]]] | None = None

    def spans(self, epoch: int) -> list[Span]:
        """One for every batch, as long as its longest target with its end."""
        lengths = self.pairs.target.lengths + 1
        return [Span(place, int(lengths[indices].max()), epoch) for place, indices in enumerate(self._batches(epoch))]

    def batch(self, span: Span) -> Batch:
        """The batch of a span."""
        return self.corpus.gather(self.pairs, self._batches(span.epoch)[span.start])

    def _batches(self, epoch: int) -> list[list[int]]:
        if self._laid is None or self._laid[0] != epoch:
            found = self.corpus.buckets(
                self.pairs, batch_size=self.batch_size, tokens_per_batch=self.tokens, seed=self.seed, epoch=epoch
            )
            self._laid = (epoch, found)
        return self._laid[1]


def open_pairs(source: str | Path, options: PairOptions, *, symbols: PairSymbols | None = None) -> PairCorpus:
    """Read a corpus of pairs: a file, a folder, or the beginning that the names of parallel files share.

    The names are those of `elman.data.pairs.files.find_files`. `symbols` are those of a run; None: they are counted in
    the training split.

    Raises UserError where a file or its pairs cannot be used.
    """
    path = Path(source)
    files = find_files(path, options)
    read = {name: read_pairs(paths, options) for name, paths in files.items()}
    raw = {name: part.pairs for name, part in read.items()}
    empty = {name: part.empty for name, part in read.items()}
    if "all" in raw:
        raw, empty = cut(raw["all"], options, str(source)), {"train": empty["all"]}
    tokenisers = learn_tokenisers(raw["train"], options) if symbols is None else symbols.tokenisers
    raw["train"], too_long = _short_enough(raw["train"], tokenisers, options, str(source))
    if symbols is None:
        symbols = PairSymbols.counted(raw["train"], tokenisers, options, str(source))
    splits = {name: _encode(name, pairs, symbols) for name, pairs in raw.items()}
    for name, pairs in splits.items():
        pairs.facts.update(empty=empty.get(name, 0), too_long=too_long if name == "train" else 0)
    digests = {file.name: sha256_file(file) for paths in files.values() for file in paths}
    name = path.resolve().name.removesuffix(".tsv")
    return PairCorpus(name, str(source), options, symbols, splits, digests)


def _short_enough(
    pairs: list[RawPair], tokenisers: PairTokenisers, options: PairOptions, name: str
) -> tuple[list[RawPair], int]:
    """Training pairs within the limits, and how many are not."""
    kept = [
        pair
        for pair in pairs
        if len(tokenisers.source_words(pair.source)) <= options.max_source
        and len(tokenisers.target_words(pair.target)) <= options.max_target
    ]
    if not kept:
        raise UserError(
            f"{name}: all {len(pairs):,} training pairs are longer than data.max_source = {options.max_source} or"
            f" data.max_target = {options.max_target} symbols; raise the limits, or give shorter pairs"
        )
    return kept, len(pairs) - len(kept)


def _encode(name: str, pairs: list[RawPair], symbols: PairSymbols) -> Pairs:
    limit = symbols.options.max_source
    read = [symbols.source_words(pair.source) for pair in pairs]
    written = [symbols.target_words(pair.target) for pair in pairs]
    source = Sequences(symbols.source.encode(words[:limit]) for words in read)
    target = Sequences(symbols.target.encode(words) for words in written)
    facts = {
        "lines": len(pairs),
        "source_symbols": len(source.symbols),
        "tokens": len(target.symbols) + len(pairs),
        "unknown": int((target.symbols == symbols.target.ids[UNK]).sum()),
        "source_unknown": int((source.symbols == symbols.source.ids[UNK]).sum()),
        "characters": sum(len(pair.target) + 1 for pair in pairs),
        "cut": sum(len(words) > limit for words in read),
    }
    return Pairs(name, source, target, [pair.source for pair in pairs], [pair.target for pair in pairs], facts)
