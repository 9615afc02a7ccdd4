"""Whether lines are a table of numbers."""

import re
from collections import Counter
from collections.abc import Sequence

from elman.data.kinds import Seen
from elman.data.numbers import is_date, is_missing
from elman.data.tables import rows_of
from elman.errors import UserError
from elman.kinds.pairs.looks import is_table_of_pairs
from elman.kinds.pairs.table import FEWEST
from elman.kinds.series.table import delimiter, is_meant_as_number

MOST = 0.9  # the share of rows and of cells by which a table is recognised


def are_numbers(seen: Seen) -> bool:
    """Whether there is a table of numbers, and not one of pairs."""
    marks = map(delimiter, (*seen.rows[:2], *seen.rows[len(seen.rows) // 2 :][:1]))
    return any(_are_numbers(seen.suffix, seen.rows, mark) for mark in marks) and not is_table_of_pairs(seen)


def _are_numbers(suffix: str, lines: Sequence[str], mark: str | None) -> bool:
    try:
        rows = [cells for _, cells in rows_of("\n".join(lines), "", delimiter_of=lambda _: mark, cut=True)]
    except UserError:
        return False
    rows = rows[1:] or rows
    width = Counter(map(len, rows)).most_common(1)[0][0] if rows else 0
    even = [cells for cells in rows if len(cells) == width]
    if not rows or len(even) < MOST * len(rows):
        return False
    columns = list(zip(*even, strict=True))
    shares = [_share(column) for column in columns]
    items = False not in shares and any(map(_names_items, columns))
    return any(shares) and (None not in shares or (suffix in (".csv", ".tsv") and not items))


def _names_items(column: Sequence[str]) -> bool:
    """Whether the cells of a column are words, nearly each others: rows without dates are no steps then, but items."""
    words = {re.sub("[0-9]+", "", cell).strip() for cell in column if any(map(str.isalpha, cell))}
    return len(column) >= FEWEST and len(words) > MOST * len(column)


def _share(column: Sequence[str]) -> bool | None:
    """Whether a column has numbers; False: it has dates, or nothing; None: it has words, more than one in ten."""
    there = [cell for cell in column if not is_missing(cell)]
    numbers, dates = (sum(map(is_one, there)) for is_one in (is_meant_as_number, is_date))
    if numbers + dates < MOST * len(there):
        return None
    return numbers > dates
