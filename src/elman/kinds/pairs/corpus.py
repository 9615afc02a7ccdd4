"""A corpus of pairs: sources and targets as ids, and the batches that training reads."""

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elman.config.text import identity
from elman.data.batches import Batch, Source
from elman.data.by_length import Lengths
from elman.data.catalog.known import locate
from elman.data.lines import fields
from elman.data.text.sources import Corpus
from elman.data.text.vocabulary import UNK
from elman.errors import UserError, counted, notice
from elman.files import sha256_file, sha256_lines
from elman.kinds.pairs.files import HELD_OUT_TOO, divided, find_files, read_pairs, read_whole, say_left_out
from elman.kinds.pairs.record import PairOptions
from elman.kinds.pairs.symbols import PairSymbols, learn_tokenisers
from elman.kinds.pairs.table import RawPair


class Sequences:
    """Symbols of many sequences, end to end.

    Example:
        >>> sequences = Sequences([np.array([3, 1]), np.array([2])])
        >>> sequences[0], len(sequences), sequences.lengths.tolist()
        (tensor([3, 1]), 2, [2, 1])
    """

    def __init__(self, sequences: Iterable[npt.NDArray[np.integer]]) -> None:
        parts = list(sequences)
        self.symbols = np.concatenate(parts).astype(np.int32) if parts else np.zeros(0, np.int32)
        self.ends = np.cumsum([len(part) for part in parts], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        return np.diff(self.ends, prepend=0)

    def __getitem__(self, index: int) -> Tensor:
        """One sequence, int64 [length]."""
        start = self.ends[index - 1] if index else 0
        return torch.from_numpy(self.symbols[start : self.ends[index]].astype(np.int64))

    def __iter__(self) -> Iterator[Tensor]:
        return (self[index] for index in range(len(self)))


def side_by_side(sources: list[Tensor], targets: list[Tensor], symbols: PairSymbols) -> Batch:
    """Pairs as one window whose columns are conditioned on their sources.

    The sources are in the order of the text and reversed where the options ask for it; the targets are without start
    and end symbols. Inputs begin with the start symbol and targets end with the end symbol, int64 [T, B]; padding is 0.
    """
    end = torch.tensor([symbols.target.eos])
    inputs, mask = _pad([torch.cat([end, target]) for target in targets])
    written, _ = _pad([torch.cat([target, end]) for target in targets])
    return Batch(inputs, written, mask, None, sources_side_by_side(sources, symbols))


def sources_side_by_side(sources: list[Tensor], symbols: PairSymbols) -> Source:
    """Sources in the order of the text, padded at the end; reversed where the options ask for it."""
    return Source(*_pad([source.flip(0) for source in sources] if symbols.options.reverse_source else sources))


def _pad(sequences: list[Tensor]) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    mask = torch.arange(int(lengths.max())).unsqueeze(1) < lengths
    return torch.nn.utils.rnn.pad_sequence(sequences), mask


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

    @property
    def lengths(self) -> Lengths:
        """Of the sources and of the targets with their end symbol, [2, n]."""
        return np.stack([self.source.lengths, self.target.lengths + 1])


@dataclasses.dataclass(frozen=True, eq=False)
class PairCorpus(Corpus[PairOptions, Pairs]):
    symbols: PairSymbols
    sha256: dict[str, str]

    def gather(self, pairs: Pairs, indices: list[int]) -> Batch:
        """The pairs at these places, side by side; sources reversed where the options ask for it."""
        sources, targets = ([side[index] for index in indices] for side in (pairs.source, pairs.target))
        return side_by_side(sources, targets, self.symbols)

    @property
    def digest(self) -> str:
        return sha256_lines(self.symbols.digest, identity(self.options), *map(" ".join, self.sha256.items()))

    def facts(self) -> dict[str, Any]:
        sizes = {"source": self.symbols.source, "target": self.symbols.target}
        return {
            "vocabulary": {side: {"size": len(one), "digest": one.digest} for side, one in sizes.items()},
            "splits": {name: pairs.facts for name, pairs in self.splits.items()},
            "files": self.sha256,
        }


def open_pairs(source: str | Path, options: PairOptions, *, symbols: PairSymbols | None = None) -> PairCorpus:
    """Read a corpus of pairs: a known one, a file, a folder, or the beginning that the names of parallel files share.

    `elman.kinds.pairs.files.find_files` defines the names. `symbols`: of a run; None: they are counted in the training
    split.

    Where symbols are counted, training pairs that are left out are reported on standard error. Raises UserError where a
    file or its pairs cannot be used, or a known corpus is not prepared.
    """
    path = locate(source, "pairs")
    files = find_files(path, options)
    read = dict[str, tuple[list[RawPair], int]]()
    for name, paths in files.items():
        read |= read_whole(paths, options) if name == "all" else {name: read_pairs(paths, options)}
    raw = {name: pairs for name, (pairs, _) in read.items()}
    sources = (pair.source for pairs in raw.values() for pair in pairs if options.form == "trees")
    if odd := next((word for text in sources for word in fields(text) if len(word.split()) != 1), None):
        raise UserError(f"{source}: the word {odd!r} has white space within; read these trees with data.kind = 'trees'")
    empty = {name: count for name, (_, count) in read.items()}
    if "all" in empty:
        empty = {"train": empty["all"]}
    raw, held_out_too = divided(raw, options, str(source))
    empty = dict.fromkeys(raw, 0) | empty
    raw["train"] = raw["train"][: options.train_pairs]
    tokenisers = learn_tokenisers(raw["train"], options) if symbols is None else symbols.tokenisers
    too_long = dict.fromkeys(raw, 0)
    for name in raw if options.long_held_out == "omit" else ("train",):
        before = raw[name]
        raw[name] = [
            pair
            for pair in before
            if len(tokenisers.source_words(pair.source)) <= options.max_source
            and len(tokenisers.target_words(pair.target)) <= options.max_target
        ]
        too_long[name] = len(before) - len(raw[name])
        if not raw[name]:
            what = {"train": "training", "valid": "validation", "test": "test"}[name]
            raise UserError(
                f"{source}: all {len(before):,} {what} pairs are longer than {_limits(options)} symbols; raise the"
                " limits, or give shorter pairs"
            )
    if symbols is None:
        reasons = {
            "with an empty side": empty["train"],
            HELD_OUT_TOO: held_out_too,
            f"of more symbols than {_limits(options)}": too_long["train"],
        }
        say_left_out(str(source), "training pairs", reasons)
        symbols = PairSymbols.counted(raw["train"], tokenisers, options, str(source))
    splits = {name: _encode(name, pairs, symbols) for name, pairs in raw.items()}
    for name, pairs in splits.items():
        pairs.facts.update(empty=empty.get(name, 0), too_long=too_long[name])
    digests = {file.name: sha256_file(file) for paths in files.values() for file in paths}
    name = path.resolve().name.removesuffix(".tsv")
    return PairCorpus(name, str(source), options, splits, symbols, digests)


def say_held_out(corpus: PairCorpus, pairs: Pairs) -> None:
    """Notices of the pairs of a held-out split that were left out, and of its sources that are cut."""
    facts, options = pairs.facts, corpus.options
    reasons = {
        "with an empty side": facts["empty"],
        f"of more symbols than {_limits(options)}": facts["too_long"],
    }
    say_left_out(corpus.source, f"pairs of the {pairs.name} split", reasons)
    if facts["cut"]:
        notice(
            f"{corpus.source}: {facts['cut']:,} of {counted(len(pairs), 'source')} of the {pairs.name} split cut after"
            f" data.max_source = {options.max_source} symbols"
        )


def _limits(options: PairOptions) -> str:
    return f"data.max_source = {options.max_source} or data.max_target = {options.max_target}"


def _encode(name: str, pairs: list[RawPair], symbols: PairSymbols) -> Pairs:
    limit = symbols.options.max_source
    read = [symbols.tokenisers.source_words(pair.source) for pair in pairs]
    written = [symbols.tokenisers.target_words(pair.target) for pair in pairs]
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
