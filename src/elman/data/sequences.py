"""Sequences of different lengths in one array."""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


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
