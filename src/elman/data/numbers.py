"""What a cell of a table is: a number, a date, or a missing value; and what a column of them is.

A number is written in ASCII digits with a decimal point or comma and an exponent, as `12`, `-1.5`, `,5`, `1e-3`; groups
of three digits may be parted (`1,234.5`, `1.234,5`, `1 234,5`). Underscores, hexadecimal digits, `nan` and `inf` are no
numbers. Which of comma and point is the decimal mark is decided by all cells of a column (`decimal_marks`).
"""

import re
from collections.abc import Sequence

import numpy as np

from elman.errors import UserError

MISSING = frozenset(("", "nan", "na", "n/a", "#n/a", "null", "none", "-", "?", "."))
"""Cells, in lower case, that have no value."""

MINUS, SPACES = "\u2212", "'\u2019\u00a0\u202f "
FEWEST = 3  # rows by which a column can be known to number them


def _form(decimal: str, other: str, least: str) -> re.Pattern[str]:
    grouped = rf"[1-9]\d{{0,2}}(?P<mark>[{other}{SPACES}])\d{{3}}(?:(?P=mark)\d{{3}})*(?:[{decimal}]\d{least})?"
    plain = rf"(?:\d+(?:[{decimal}]\d{least})?|[{decimal}]\d+)(?:[eE][+-]?\d+)?"
    return re.compile(rf"[+-]?(?:{plain}|{grouped})", re.ASCII)


_PLAIN = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
_FORMS = {".": _form(".", ",", "*"), ",": _form(",", ".", "+")}

_MONTHS = (
    "jan feb mar apr may jun jul aug sep oct nov dec"  # English
    " mai mär okt dez fév fev avr juin juil aoû aou déc ene abr ago dic gen mag giu lug set ott"  # and others of Europe
)
_DATES = re.compile(
    r"""(?:
        \d{4}(?P<s>[-/._])\d{1,2}(?P=s)\d{1,2} | \d{4}[-/_]\d{1,2}     # 2020-01-31, 2020-01
      | \d{1,2}(?P<t>[-/.])\d{1,2}(?P=t)(?:\d{4}|\d{2})                # 31.01.2020, 1/31/20
      | \d{4}[ -]?[QWH]\d{1,2} | [QWH]\d{1,2}[ /-]\d{4}                # 2020Q1, Q1 2020
      | (?:\d{1,2}\.?[ -])?MONTH[ -](?:\d{4}|\d{2})                    # 31 January 2020, Jan-20
      | MONTH[ ]\d{1,2},?[ ]\d{4} | \d{1,2}\.?[ -]MONTH                # January 31, 2020, 31 January
      | \d{4}[ -]MONTH(?:[ -]\d{1,2})?                                  # 2020-Jan-31
    )(?:(?:T|,?[ ]+)TIME)? | TIME""".replace(
        "TIME", r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:[ ]?[AP]M)?(?:[ ]?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?"
    )
    .replace("MONTH", rf"(?:{_MONTHS.replace(' ', '|')})[a-z\u00e0-\u00ff]*\.?")
    .replace(r"\d", "[0-9]"),
    re.VERBOSE | re.IGNORECASE,
)
_COMPACT_DATE = re.compile(
    r"(?:1[89]|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])?|1\d{9}(?:\d{3}|\.\d+)?", re.ASCII
)


def is_missing(cell: str) -> bool:
    """Whether a cell has no value."""
    return cell.strip().lower() in MISSING


def is_date(cell: str) -> bool:
    """Whether a cell is a date, a time or both, and no number.

    >>> [is_date(cell) for cell in ("2020-01-31", "31.1.20 18:00", "2020_01", "Jan 2020", "18:00", "2020", "1.5")]
    [True, True, True, True, True, False, False]
    """
    return _DATES.fullmatch(cell.strip()) is not None


def number(cell: str, decimal: str | None = None, *, grouped: bool = True) -> float | None:
    """The number in a cell with this decimal mark, or with any; None where there is none.

    `grouped`: marks may stand between its thousands.

    >>> number("1.5"), number("1,5"), number("1,234.5", "."), number("1.234,5", ","), number("2020_01"), number("inf")
    (1.5, 1.5, 1234.5, 1234.5, None, None)
    """
    if decimal != "," and _PLAIN.fullmatch(cell):  # most of them, in a fifth of the time
        return float(cell)
    cell = cell.strip().replace(MINUS, "-")
    for mark in (decimal,) if decimal else _FORMS:
        if (found := _FORMS[mark].fullmatch(cell)) and (grouped or not found["mark"]):
            return float(cell.replace(found["mark"] or "\0", "").replace(",", "."))
    return None


def decimal_marks(columns: Sequence[Sequence[str]], names: Sequence[str], path: object, delimiter: str) -> list[str]:
    """The decimal mark of each column of numbers, by all its cells; a column with a wrong cell has its first's.

    Numbers such as `1,234` can be read in two ways. Other columns of the table, in which numbers have one reading,
    decide, then a semicolon as delimiter, which is written where the comma is the decimal mark.

    Raises UserError where nothing decides.
    """
    fits = [
        [mark for mark in _FORMS if all(number(cell, mark) is not None or is_missing(cell) for cell in column)]
        for column in columns
    ]
    sure = {fit[0] for fit in fits if len(fit) == 1}
    found = []
    for name, column, fit in zip(names, columns, fits, strict=True):
        first = next((cell for cell in column if not is_missing(cell)), "")
        mark = fit[0] if fit else next((mark for mark in _FORMS if number(first, mark) is not None), ".")
        marked = [cell for cell in column if "," in cell or "." in cell] if len(fit) > 1 else []
        doubtful = next((cell for cell in marked if number(cell, ".") != number(cell, ",")), None)
        with_commas = any("," in cell for cell in marked)
        if doubtful is not None and (with_commas or "," in sure):
            readings = sure or ({","} if delimiter == ";" else set())
            if len(readings) != 1 or not with_commas:
                raise UserError(
                    f"{path}, column {name}: {doubtful.strip()} may be {number(doubtful, '.'):g} or"
                    f" {number(doubtful, ','):g}; write decimal points and no marks between thousands"
                )
            (mark,) = readings
        found.append(mark)
    return found


def is_numbering(cells: Sequence[str]) -> bool:
    """Whether a column numbers the rows: it rises at every row, nine times in ten by the same step; or has dates.

    Dates are those written as numbers, such as 20200131, 202001 and seconds since 1970; they, and years, may also fall.
    """
    values = [number(cell) for cell in cells]
    if len(values) < FEWEST or None in values:
        return False
    steps = np.diff(np.array(values, np.float64))
    rises, usual = bool((steps > 0).all()), float(np.median(steps))
    if not rises and not (steps < 0).all():
        return False
    alike = np.abs(steps - usual) <= 1e-6 * abs(usual)
    counts = rises or all(1500 < year < 2300 for year in values if year)
    return bool(counts and alike.mean() >= 0.9) or all(_COMPACT_DATE.fullmatch(cell.strip()) for cell in cells)


def in_ranges(numbers: Sequence[int]) -> str:
    """Rising numbers in words.

    >>> in_ranges([3, 7, 8, 9])
    '3, 7 to 9'
    """
    parts: list[list[int]] = []
    for one in numbers:
        if parts and one == parts[-1][-1] + 1:
            parts[-1][1:] = [one]
        else:
            parts.append([one])
    return ", ".join(" to ".join(map(str, part)) for part in parts)
