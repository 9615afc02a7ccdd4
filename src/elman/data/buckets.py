"""Batches of sequences of similar length, so that little of them is padding."""

import numpy as np
import numpy.typing as npt

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
