"""One length of n-grams within interpolated modified Kneser-Ney (Chen & Goodman 1999): counts less their discounts."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[Any]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class NGrams(NamedTuple):
    """The n-grams of one length that were seen.

    Attributes:
        keys: their keys, in order, [U].
        counts: occurrences at the highest order, distinct words in front of them at the others, [U].

    """

    keys: Int64s
    counts: Int64s


class Level(NamedTuple):
    """The probabilities of one length of n-grams.

    Attributes:
        keys: sorted keys of the n-grams that were seen, [U].
        discounted: their counts less the discount, [U].
        total: the sum of counts in each context, [contexts].
        backoff: the probability that a context leaves to the level below, [contexts].

    """

    keys: Int64s
    discounted: Floats
    total: Floats
    backoff: Floats


def level_of(grams: NGrams, contexts: int, vocabulary_size: int) -> Level:
    """The level of n-grams whose contexts are numbered below `contexts`."""
    keys, counts = grams
    context = keys // vocabulary_size
    taken: Floats = np.minimum(_discounts(counts)[np.minimum(counts, 3)], counts)
    total: Floats = np.bincount(context, weights=counts, minlength=contexts).astype(np.float64)
    left: Floats = np.bincount(context, weights=taken, minlength=contexts).astype(np.float64)
    backoff = np.divide(left, total, out=np.ones_like(total), where=total > 0)
    discounted: Floats = counts - taken
    return Level(keys, discounted, total, backoff)


def interpolate(level: Level, context: Int64s, found: Int64s, below: Floats) -> Floats:
    """The probabilities of a level, [n].

    Args:
        level: the level.
        context: the numbers of the contexts, -1 where unseen, [n].
        found: the numbers of the n-grams, -1 where unseen, [n].
        below: the probabilities that the level below gives, [n].

    """
    known = (context >= 0) & (level.total[context] > 0)
    here = np.where(found >= 0, level.discounted[found], 0.0) / np.where(known, level.total[context], 1.0)
    return np.where(known, here + level.backoff[context] * below, below)


def _discounts(counts: Int64s) -> Floats:
    """D by count (0, 1, 2, 3 and more), from how many n-grams have counts 1 to 4 (Chen & Goodman 1999).

    A discount is half the count (1.5 for three and more) where it would not be positive, and at every count of a
    level that has no n-gram of one of these counts, as in a small text.
    """
    of = np.bincount(np.minimum(counts, 5), minlength=6).astype(np.float64)
    discounts = np.array([0.0, 0.5, 1.0, 1.5])
    if not of[1:5].all():
        return discounts
    ratio = of[1] / (of[1] + 2 * of[2])
    for count in (1, 2, 3):
        value = count - (count + 1) * ratio * of[count + 1] / of[count]
        if value > 0:
            discounts[count] = value
    return discounts
