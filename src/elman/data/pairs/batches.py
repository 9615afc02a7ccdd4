"""Pairs of similar length side by side: sequences in one array, the order of batches, and padding."""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elman.data.batches import Batch, Source
from elman.data.pairs.symbols import PairSymbols

POOL = 50
"""Batches whose pairs are sorted together: more leaves less padding, fewer leaves the order more random."""

STEP = 4
"""Targets whose lengths differ by less than this count as equally long, so that sources may be sorted too."""

Lengths = npt.NDArray[np.int64]
"""Of the sources and of the targets with their end symbol, [2, n]."""


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
        """The length of each, [n]."""
        return np.diff(self.ends, prepend=0)

    def __getitem__(self, index: int) -> Tensor:
        """One sequence, int64 [length]."""
        start = self.ends[index - 1] if index else 0
        return torch.from_numpy(self.symbols[start : self.ends[index]].astype(np.int64))

    def __iter__(self) -> Iterator[Tensor]:
        return (self[index] for index in range(len(self)))


def by_length(
    lengths: Lengths, *, batch_size: int | None = None, tokens_per_batch: int | None = None
) -> list[list[int]]:
    """All pairs once, the short ones first, in an order that depends on the lengths alone."""
    return _batches(_sorted(np.arange(lengths.shape[1]), lengths), lengths, batch_size, tokens_per_batch)


def shuffled(
    lengths: Lengths,
    seed: int,
    epoch: int,
    *,
    batch_size: int | None = None,
    tokens_per_batch: int | None = None,
    in_order: bool = False,
) -> list[list[int]]:
    """All pairs once, in a random order that depends on the seed and the epoch alone.

    The pairs are shuffled, sorted by length in pools of about fifty batches, and the batches shuffled. A batch has
    `batch_size` pairs, or at most `tokens_per_batch` symbols, padding included, sources and targets together; a longer
    pair is a batch of its own. With `in_order` the pairs, and so the pools, keep their order, and the batches are
    shuffled within each pool.
    """
    draw = np.random.default_rng([seed, epoch])
    order = np.arange(lengths.shape[1]) if in_order else draw.permutation(lengths.shape[1])
    mean = max(1.0, float(lengths.sum() / max(1, lengths.shape[1])))
    pool = POOL * (batch_size or max(1, round((tokens_per_batch or 1) / mean)))
    starts = range(0, len(order), pool)
    pools = [_batches(_sorted(order[at : at + pool], lengths), lengths, batch_size, tokens_per_batch) for at in starts]
    parts = pools if in_order else [[batch for part in pools for batch in part]]
    return [part[index] for part in parts for index in draw.permutation(len(part))]


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
