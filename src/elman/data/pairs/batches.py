"""Pairs of different lengths side by side."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elman.data.pairs.symbols import PairSymbols


# FOLDED data/sequences.py: Sequences of different lengths in one array.
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
        """How long each is, [n]."""
        return np.diff(self.ends, prepend=0)

    def __getitem__(self, index: int) -> Tensor:
        """One sequence, int64 [length]."""
        start = self.ends[index - 1] if index else 0
        return torch.from_numpy(self.symbols[start : self.ends[index]].astype(np.int64))

    def __iter__(self) -> Iterator[Tensor]:
        return (self[index] for index in range(len(self)))


# FOLDED data/buckets.py: Batches of sequences of similar length, so that little of them is padding.
POOL = 50
"""Batches whose pairs are sorted together: more leaves less padding, fewer leaves the order more random."""

STEP = 4
"""Targets whose lengths differ by less than this count as equally long, so that sources may be sorted too."""

Lengths = npt.NDArray[np.int64]
"""Of the sources and of the targets with their end symbol, [2, n]."""


def by_length(lengths: Lengths, batch_size: int | None, tokens_per_batch: int | None) -> list[list[int]]:
    """All pairs once, the short ones first: an order that nothing but the lengths decides."""
    order = _sorted(np.arange(lengths.shape[1]), lengths)
    return _batches(order, lengths, batch_size, tokens_per_batch)


def shuffled(
    lengths: Lengths, batch_size: int | None, tokens_per_batch: int | None, seed: int, epoch: int
) -> list[list[int]]:
    """All pairs once, in a random order that the seed and the epoch alone decide.

    The pairs are shuffled, sorted by length in pools of about fifty batches, and the batches shuffled.

    Args:
        lengths: [2, n].
        batch_size: pairs a batch; either this or the next.
        tokens_per_batch: symbols of a batch at most, padding included, of sources and targets together; a pair that is
            longer alone is a batch of its own.
        seed: of the order.
        epoch: the number of the epoch.

    """
    draw = np.random.default_rng([seed, epoch])
    order = draw.permutation(lengths.shape[1])
    mean = max(1.0, float(lengths.sum() / max(1, lengths.shape[1])))
    pool = POOL * (batch_size or max(1, round((tokens_per_batch or 1) / mean)))
    batches: list[list[int]] = []
    for at in range(0, len(order), pool):
        part = _sorted(order[at : at + pool], lengths)
        batches += _batches(part, lengths, batch_size, tokens_per_batch)
    return [batches[index] for index in draw.permutation(len(batches))]


def _sorted(places: npt.NDArray[np.int64], lengths: Lengths) -> npt.NDArray[np.int64]:
    """By target length in steps of `STEP`, then by source length: little padding on either side."""
    return places[np.lexsort((lengths[0, places], lengths[1, places] // STEP))]


def _batches(
    order: npt.NDArray[np.int64], lengths: Lengths, batch_size: int | None, tokens_per_batch: int | None
) -> list[list[int]]:
    assert (batch_size is None) != (tokens_per_batch is None), "one of the two"
    if batch_size is not None:
        return [order[at : at + batch_size].tolist() for at in range(0, len(order), batch_size)]
    assert tokens_per_batch is not None
    batches: list[list[int]] = []
    longest = np.zeros(2, np.int64)
    for index in order.tolist():
        grown = np.maximum(longest, lengths[:, index])
        if not batches or (len(batches[-1]) + 1) * int(grown.sum()) > tokens_per_batch:
            batches.append([])
            grown = lengths[:, index]
        batches[-1].append(index)
        longest = grown
    return batches


# TARGET
class PairBatch(NamedTuple):
    """Pairs side by side.

    Attributes:
        source: ids of the source vocabulary, padded at the end with 0, int64 [S, B].
        source_mask: which of them are symbols, bool [S, B].
        inputs: the target with the start symbol first, int64 [T, B].
        targets: the target with the end symbol last, int64 [T, B].
        mask: which targets count, bool [T, B].
        indices: the places of the pairs in their split, int64 [B].

    """

    source: Tensor
    source_mask: Tensor
    inputs: Tensor
    targets: Tensor
    mask: Tensor
    indices: Tensor

    def to(self, device: torch.device) -> "PairBatch":
        """The same pairs on another device."""
        return PairBatch(*(part.to(device, non_blocking=True) for part in self))


def gather(sources: list[Tensor], targets: list[Tensor], indices: list[int], symbols: PairSymbols) -> PairBatch:
    """Sources and targets (without start and end symbols) side by side."""
    end = torch.tensor([symbols.target.eos])
    read = [source.flip(0) for source in sources] if symbols.options.reverse_source else sources
    source, source_mask = _pad(read)
    inputs, mask = _pad([torch.cat([end, target]) for target in targets])
    written, _ = _pad([torch.cat([target, end]) for target in targets])
    return PairBatch(source, source_mask, inputs, written, mask, torch.tensor(indices))


def _pad(sequences: list[Tensor]) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    mask = torch.arange(int(lengths.max())).unsqueeze(1) < lengths
    return torch.nn.utils.rnn.pad_sequence(sequences), mask
