"""Whole sequences of similar length side by side: the order of batches, and the windows that training reads."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from elman.data.batches import Batch
from elman.data.windows import Span

POOL = 50  # batches whose sequences are sorted together: more leaves less padding, fewer leaves the order more random
STEP = 4  # sequences whose lengths differ by less than this count as equally long, so that sources may be sorted too
Lengths = npt.NDArray[np.int64]
"""Of sequences [n]; of pairs [2, n], the sources first, then the targets with their end symbol."""


def by_length(
    lengths: Lengths, *, batch_size: int | None = None, tokens_per_batch: int | None = None
) -> list[list[int]]:
    """All sequences once, the short ones first, in an order that depends on the lengths alone."""
    return _batches(np.arange(lengths.shape[-1]), lengths, batch_size, tokens_per_batch)


def shuffled(
    lengths: Lengths,
    seed: int,
    epoch: int,
    *,
    batch_size: int | None = None,
    tokens_per_batch: int | None = None,
    in_order: bool = False,
) -> list[list[int]]:
    """All sequences once, in a random order that depends on the seed and the epoch alone.

    They are shuffled, sorted by length in pools of about fifty batches, and the batches shuffled. A batch has
    `batch_size` sequences, or at most `tokens_per_batch` symbols, padding included, sources and targets together; a
    longer pair is a batch of its own. With `in_order` the sequences, and so the pools, keep their order, and the
    batches are shuffled within each pool.
    """
    draw, count = np.random.default_rng([seed, epoch]), lengths.shape[-1]
    order = np.arange(count) if in_order else draw.permutation(count)
    mean = max(1.0, float(lengths.sum() / max(1, count)))
    pool = POOL * (batch_size or max(1, round((tokens_per_batch or 1) / mean)))
    starts = range(0, len(order), pool)
    pools = [_batches(order[at : at + pool], lengths, batch_size, tokens_per_batch) for at in starts]
    parts = pools if in_order else [[batch for part in pools for batch in part]]
    return [part[index] for part in parts for index in draw.permutation(len(part))]


def _batches(
    places: npt.NDArray[np.int64], lengths: Lengths, batch_size: int | None, tokens_per_batch: int | None
) -> list[list[int]]:
    """By length (of targets) in steps of `STEP`, then by the source's length: little padding on either side."""
    assert (batch_size is None) != (tokens_per_batch is None), "one of the two"
    rows = np.atleast_2d(lengths)
    order = places[np.lexsort((rows[0, places], rows[-1, places] // STEP))]
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


class WholeWindows:
    """Sequences of similar length side by side, every one once per epoch, as `rules` of `shuffled` say.

    `gather` puts the sequences at some places side by side. The batches of an epoch depend on the seed and the epoch's
    number alone, so a resumed run needs only its position.
    """

    def __init__(self, lengths: Lengths, gather: Callable[[list[int]], Batch], seed: int, **rules: Any) -> None:
        self.lengths, self.gather = np.atleast_2d(lengths)[-1], gather
        self._batches = functools.lru_cache(1)(functools.partial(shuffled, lengths, seed, **rules))

    def spans(self, epoch: int) -> list[Span]:
        """One for every batch, as long as its longest sequence."""
        batches = enumerate(self._batches(epoch))
        return [Span(place, int(self.lengths[indices].max()), epoch) for place, indices in batches]

    def batch(self, span: Span) -> Batch:
        return self.gather(self._batches(span.epoch)[span.start])
