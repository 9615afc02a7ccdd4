"""What series look like: arrays and tables of numbers."""

import re

from elman.data.kinds import Look, Seen, looks
from elman.formats import NPY

ORDER = 1

SUFFIXES = (".csv", ".tsv", ".npy", ".npz")
"""Endings of names that promise series."""

_WORDS = re.compile(r"(?!none\b|null\b|infinity\b)[^\W\d_]{4}", re.IGNORECASE)


def claim(seen: Seen) -> Look | None:
    """Arrays, and tables of numbers: all columns, in .csv and .tsv one of them, apart from one row in ten.

    A row that does not fit is for the reader of series to name: a damaged table is no prose.
    """
    if seen.head.startswith(NPY):
        return looks("series", "an array of numbers (.npy)")
    if seen.arrays and not any(name.endswith("_roll") for name in seen.arrays):
        return looks("series", "arrays of numbers (.npz)")
    if seen.suffix not in (".csv", ".tsv") and _are_words(seen.rows):
        return None
    from elman.kinds.series.recognition import are_numbers

    if are_numbers(seen):
        return looks("series", "a table of numbers", "text", *(["pairs"] if seen.in_two_columns else []))
    return None


def _are_words(rows: list[str]) -> bool:
    """Whether most rows have words and no number."""
    plain = sum(_WORDS.search(row) is not None and not any(map(str.isdecimal, row)) for row in rows)
    return 2 * plain >= len(rows)
