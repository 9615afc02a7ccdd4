"""Pairs of different lengths side by side."""

from typing import NamedTuple

import torch
from torch import Tensor

from elman.data.pair_symbols import PairSymbols


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
