"""Pairs side by side: sequences in one array, and padding."""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elman.data.batches import Batch, Source
from elman.kinds.pairs.symbols import PairSymbols


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
