"""Whether lines are a table of pairs, or words and their phonemes."""

from elman.data.kinds import Seen
from elman.data.tables import rows_of
from elman.errors import UserError
from elman.kinds.pairs.files import entry_of
from elman.kinds.pairs.looks import COMMENTS
from elman.kinds.pairs.table import columns_of, pairs_mark


def is_table_of_pairs(seen: Seen) -> bool:
    """Whether there is a table with two columns of text, whatever else it has."""
    mark = pairs_mark(seen.suffix, seen.rows)
    if mark is None:
        return False
    try:
        rows = rows_of("\n".join(seen.rows), "", delimiter_of=lambda _: mark, cut=True)
    except UserError:
        return False
    return columns_of(rows) is not None


def are_pronunciations(rows: list[str]) -> bool:
    """Whether lines are words and their phonemes: few symbols, each of many words, about as many as letters.

    Where one blank divides them, as in cmudict of today, most words must differ and have letters.
    """
    divided = sum("  " in row or "\t" in row or row.startswith(COMMENTS) for row in rows) >= 0.98 * len(rows)
    entries = [entry_of(row) for row in rows if not row.startswith(COMMENTS)]
    found = [(entry.source, entry.target.split()) for entry in entries if entry]
    if len(found) < 20 or len(found) < 0.98 * len(entries):
        return False
    symbols, letters = [symbol for _, some in found for symbol in some], sum(len(word) for word, _ in found)
    several = sum(len(some) > 1 for _, some in found) > 0.8 * len(found)
    words = {word for word, _ in found}
    few = len(set(symbols)) <= max(20, min(150, len(symbols) // 6)) and len(words) > len(found) * (
        0.5 if divided else 0.8
    )
    if not divided and sum(any(map(str.isalpha, word)) for word in words) < 0.98 * len(words):
        return False
    return several and few and 0.4 * letters <= len(symbols) <= 1.5 * letters and max(map(len, symbols)) <= 6
