"""Two models on the same minimal pairs (McNemar's test) and on the same sentences (a t test by item), and over all."""

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
import numpy as np
from scipy import stats

from elman.data.minimal_pairs import Pair
from elman.evaluation.minimal_pairs import by_phenomenon
from elman.evaluation.statistics import LEVEL, Floats, compare


class McNemar(msgspec.Struct, frozen=True):
    """Two-sided p-values of no difference between two accuracies on the same pairs.

    Only pairs count of which one model is right and the other wrong: `exact` is the binomial test of their shares being
    equal, `mid_p` the same with half the probability of the observed split, which is less conservative (Fagerland,
    Lydersen & Laake 2013).
    """

    exact: float
    mid_p: float


def mcnemar(only_a: int, only_b: int) -> McNemar:
    """McNemar's test of the numbers of pairs that only A, or only B, judges correctly.

    Example:
        >>> found = mcnemar(1, 5)
        >>> round(found.exact, 6), round(found.mid_p, 6)
        (0.21875, 0.125)
        >>> mcnemar(0, 0)
        McNemar(exact=1.0, mid_p=1.0)
    """
    fewer, different = min(only_a, only_b), only_a + only_b
    tail, at = stats.binom.cdf(fewer, different, 0.5), stats.binom.pmf(fewer, different, 0.5)
    return McNemar(float(min(1.0, 2 * tail)), float(min(1.0, 2 * tail - at)))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number by Holm's method (1979), in the given order.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    adjusted, largest = [1.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


Tested = TypeVar("Tested", "PairedAccuracy", "PairedItems")


def adjusted(tables: Iterable[Sequence[Tested]], p_value: str) -> list[list[Tested]]:
    """Tables whose rows have `p_holm` for the tests of all, but for the last row of each, which is over all others.

    `p_value` is the attribute that is adjusted; a row in which it is None is no test.
    """
    rows = [list(table) for table in tables]
    places = [(own, at) for own in rows for at, row in enumerate(own[:-1]) if getattr(row, p_value) is not None]
    for (own, at), p in zip(places, holm([getattr(own[at], p_value) for own, at in places]), strict=True):
        own[at] = msgspec.structs.replace(own[at], p_holm=p)
    return rows


class PairedAccuracy(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracies of two models on the pairs of a phenomenon that both can judge, and their difference, B - A.

    Attributes:
        phenomenon, field: as in `Pair`.
        pairs: all pairs; of these `unjudged_a`, `unjudged_b` are identical to A, or to B, and left out for both.
        judged: the pairs that are left.
        a, b: shares of them that each judges correctly; None without any.
        only_a, only_b: pairs that only one judges correctly.
        difference: b - a, with the 95 % interval of Agresti & Min 2005.
        p_exact, p_mid: of McNemar's test.
        p_holm: `p_mid` adjusted for the number of phenomena; None of all pairs together.
    """

    phenomenon: str
    field: str
    pairs: int
    unjudged_a: int
    unjudged_b: int
    judged: int
    a: float | None
    b: float | None
    only_a: int
    only_b: int
    difference: float | None
    low: float | None
    high: float | None
    p_exact: float
    p_mid: float
    p_holm: float | None = None


def compare_accuracies(pairs: Sequence[Pair], a: Floats, b: Floats) -> list[PairedAccuracy]:
    """Compare the log-probabilities [n, 2] of good and bad sentences under A and B, by phenomenon, at the end on all.

    A pair that a model cannot distinguish (NaN) is left out; a tie is not correct.
    """
    rows = [_compared(*names, a[members], b[members]) for names, members in by_phenomenon(pairs).items()]
    return adjusted([[*rows, _compared("all", "", a, b)]], "p_mid")[0]


def _compared(phenomenon: str, field: str, a: Floats, b: Floats) -> PairedAccuracy:
    unjudged_a, unjudged_b = (np.isnan(one).any(axis=1) for one in (a, b))
    both = ~(unjudged_a | unjudged_b)
    right_a, right_b = (one[both, 0] > one[both, 1] for one in (a, b))
    count, only_a, only_b = int(both.sum()), int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())
    low, high = _interval(only_a, only_b, count)
    test = mcnemar(only_a, only_b)
    return PairedAccuracy(
        phenomenon=phenomenon,
        field=field,
        pairs=len(a),
        unjudged_a=int(unjudged_a.sum()),
        unjudged_b=int(unjudged_b.sum()),
        judged=count,
        a=float(right_a.mean()) if count else None,
        b=float(right_b.mean()) if count else None,
        only_a=only_a,
        only_b=only_b,
        difference=(only_b - only_a) / count if count else None,
        low=low if count else None,
        high=high if count else None,
        p_exact=test.exact,
        p_mid=test.mid_p,
    )


def _interval(only_a: int, only_b: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a paired difference of proportions: Wald's, after half a pair is added to each cell."""
    more, total = only_b - only_a, count + 2
    error = math.sqrt((only_a + only_b + 1) - more**2 / total) / total
    margin = float(stats.norm.ppf((1 + LEVEL) / 2)) * error
    return max(-1.0, more / total - margin), min(1.0, more / total + margin)


class PairedItems(msgspec.Struct, frozen=True, kw_only=True):
    """Mean surprisals (bits per sentence) of A and B in a condition, and their difference A - B; positive favours B.

    The interval (95 %) and the two-sided p-value come from the paired t test on the means of the items, None of a
    single item; `p_holm` is adjusted for the number of conditions that are tested, None of all sentences together.
    """

    condition: str
    items: int
    sentences: int
    a: float
    b: float
    difference: float
    low: float | None
    high: float | None
    p_value: float | None
    p_holm: float | None = None


def compare_items(a: Floats, b: Floats, items: Sequence[str], conditions: Sequence[str]) -> list[PairedItems]:
    """Compare log-probabilities (nats) [n] of sentences, by condition and over all.

    Sentences of one item depend on each other: their mean is one observation.
    """
    groups: dict[str, list[int]] = {}
    for index, condition in enumerate(conditions):
        groups.setdefault(condition, []).append(index)
    rows = [
        _compared_items(name, a[members], b[members], [items[one] for one in members])
        for name, members in groups.items()
    ]
    return adjusted([[*rows, _compared_items("all", a, b, items)]], "p_value")[0]


def _compared_items(condition: str, a: Floats, b: Floats, items: Sequence[str]) -> PairedItems:
    names = {item: number for number, item in enumerate(dict.fromkeys(items))}
    place = np.array([names[item] for item in items])
    counts = np.bincount(place)
    first, second = (-np.bincount(place, one) / counts / math.log(2) for one in (a, b))
    many = len(names) > 1
    found = compare(-first, -second, block=1) if many else None
    return PairedItems(
        condition=condition,
        items=len(names),
        sentences=len(a),
        a=float(first.mean()),
        b=float(second.mean()),
        difference=float((first - second).mean()),
        low=None if found is None else found.low,
        high=None if found is None else found.high,
        p_value=None if found is None else found.p_value,
    )
