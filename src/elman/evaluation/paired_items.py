"""Two models on the same sentences: a paired t test by item, for each condition and over all."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from elman.evaluation.paired_accuracy import holm
from elman.evaluation.statistics import Floats, compare


class PairedItems(msgspec.Struct, frozen=True, kw_only=True):
    """Mean surprisals (bits per sentence) of A and B in a condition, and their difference A - B; positive favours B.

    The interval (95 %) and the two-sided p-value are those of the paired t test on the means of the items, None of a
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
        _compared(name, a[members], b[members], [items[one] for one in members]) for name, members in groups.items()
    ]
    adjusted = iter(holm([row.p_value for row in rows if row.p_value is not None]))
    rows = [row if row.p_value is None else msgspec.structs.replace(row, p_holm=next(adjusted)) for row in rows]
    return [*rows, _compared("all", a, b, items)]


def _compared(condition: str, a: Floats, b: Floats, items: Sequence[str]) -> PairedItems:
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
