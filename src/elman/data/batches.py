"""Batches: T steps of B columns side by side, with their targets and what they are conditioned on."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor


class Source(NamedTuple):
    """What targets are conditioned on: sources side by side, ids of the source vocabulary [S, B], padded at the end.

    The mask, bool [S, B], is true at symbols; padding has no effect.
    """

    symbols: Tensor
    mask: Tensor

    def to(self, device: torch.device, *, non_blocking: bool = False) -> "Source":
        return Source(*(part.to(device, non_blocking=non_blocking) for part in self))

    def columns(self, rows: slice) -> "Source":
        return Source(self.symbols[:, rows], self.mask[:, rows])


def pairs_of(mask: Tensor) -> Tensor:
    """Which pairs of neighbouring steps both count, bool [T - 1, B], of a mask [T, B]."""
    return mask[1:] & mask[:-1]


class Whole(NamedTuple):
    """The batch that some columns are a part of: its targets that count, an integer tensor, and its columns.

    `pairs`: the pairs of neighbouring steps of a column that both count, an integer tensor.
    """

    counted: Tensor
    columns: int
    pairs: Tensor

    @classmethod
    def of(cls, batch: "Batch") -> "Whole":
        mask = batch.targets.new_ones(batch.targets.shape[:2], dtype=torch.bool) if batch.mask is None else batch.mask
        return cls(mask.sum(), batch.num_columns, pairs_of(mask).sum())

    def to(self, device: torch.device, *, non_blocking: bool = False) -> "Whole":
        counted, pairs = (tensor.to(device, non_blocking=non_blocking) for tensor in (self.counted, self.pairs))
        return Whole(counted, self.columns, pairs)


class Batch(NamedTuple):
    """One window: symbols [T, B] or frames of notes [T, B, P], and the targets that follow each, of the same shape.

    `mask`, bool [T, B]: which targets count; None means all. `fresh`, bool [B]: which columns begin a sequence here;
    None means none. `source`: what the columns are conditioned on; each begins here, from its source. `trees`: those
    over sentences [S, B] (`elman.data.trees.shape.Trees`); the targets are then the labels of their nodes, [N, 1],
    with a mask of the same shape. `whole`: the batch that these columns are a part of, whose mean the loss is a share
    of; None: they are all.
    """

    inputs: Tensor
    targets: Tensor
    mask: Tensor | None = None
    fresh: Tensor | None = None
    source: Source | None = None
    trees: Any = None
    whole: Whole | None = None

    @property
    def num_columns(self) -> int:
        return self.inputs.shape[1]

    @property
    def share(self) -> float:
        """The share of these columns in the whole batch."""
        return 1.0 if self.whole is None else self.num_columns / self.whole.columns

    def to(self, device: torch.device) -> "Batch":
        return Batch(*(None if part is None else part.to(device, non_blocking=True) for part in self))  # type: ignore[arg-type]

    def columns(self, rows: slice) -> "Batch":
        mask = None if self.mask is None else self.mask[:, rows]
        fresh = None if self.fresh is None else self.fresh[rows]
        source = None if self.source is None else self.source.columns(rows)
        return Batch(self.inputs[:, rows], self.targets[:, rows], mask, fresh, source)


def stack_sequences(
    sequences: Sequence[np.ndarray], first: int, read: Sequence[np.ndarray] | None = None
) -> tuple[Batch, list[int]]:
    """Independent sequences side by side, each preceded by `first`; the padding does not count.

    `read` are the inputs where they differ from the sequences, of the same lengths.
    """
    lengths = [len(sequence) for sequence in sequences]
    inputs = np.full((max(lengths), len(sequences)), first, dtype=np.int64)
    targets = inputs.copy()
    for column, (sequence, before) in enumerate(zip(sequences, read or sequences, strict=True)):
        targets[: len(sequence), column] = sequence
        inputs[1 : len(sequence), column] = before[:-1]
    mask = torch.arange(max(lengths)).unsqueeze(1) < torch.tensor(lengths)
    return Batch(torch.from_numpy(inputs), torch.from_numpy(targets), mask), lengths
