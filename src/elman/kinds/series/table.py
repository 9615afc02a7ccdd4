"""Tables of numbers: CSV and TSV files with or without a header, and NumPy arrays, read as float64 [n, P]."""

import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from elman.data.archives import is_npy, read_npy, read_npz
from elman.data.numbers import FEWEST, decimal_marks, in_ranges, is_date, is_missing, is_numbering, number
from elman.data.tables import first_row, in_runs, rows_of, splits_of
from elman.data.text.utf8 import read_text
from elman.errors import UserError, counted, notice, one_line
from elman.kinds.series.dates import Dates, read_dates
from elman.kinds.series.record import Missing

SUFFIXES = (".csv", ".tsv", ".npy", ".npz")
Array = npt.NDArray[np.float64]
Columns = Sequence[str | int] | None


class Table(NamedTuple):
    """The columns of a file that are read: names, values float64 [n, P], NaN only where masked, dates [n] if any.

    `splits`: what a column says that divides the rows into train, valid and test.
    """

    names: tuple[str, ...]
    values: Array
    dates: Dates | None = None
    splits: Sequence[str] | None = None

    def part(self, begin: int, end: int) -> "Table":
        return Table(self.names, self.values[begin:end], None if self.dates is None else self.dates[begin:end])


def read_table(
    path: Path, columns: Columns = None, missing: Missing | None = None, known: Sequence[str] | None = None
) -> Table:
    """Read the columns of these names or numbers (the first is 0), in this order; None: all columns of values.

    Columns whose first value is no number are left out then, and a first column that numbers the rows, unless it is
    `known`, or only with it there are as many columns as are known; a notice names them. The file is CSV or TSV, whose
    delimiter (comma, semicolon, tab, bar, white space), header and decimal marks are recognised, or .npy or .npz with
    one array of numbers [n] or [n, P], read without pickle. `missing`: what becomes of cells without a value
    (`elman.kinds.series.record.SeriesOptions`).

    Raises UserError where the file cannot be read, a column is missing, two have one name, or a value is not a number,
    or missing without a rule.
    """
    read = _read_array if path.suffix == ".npz" or is_npy(path) else _read_text_table
    table, place, places, notes = read(path, columns, known)
    values, dates, splits = _without_gaps(table, f"{place}s", places, missing, path), table.dates, table.splits
    kept = ~np.isnan(table.values).any(axis=1) if len(values) < len(table.values) else np.ones(len(values), bool)
    dates = None if dates is None else dates[kept]
    splits = None if splits is None else np.array(splits)[kept].tolist()
    for note in notes:
        notice(one_line(f"{path}: {note}"))
    return Table(table.names, values, dates, splits)


_Read: TypeAlias = tuple[Table, str, Sequence[int], list[str]]
"""A table with NaN where values are missing; what a row of the file is called, and its number; what to say."""


def _read_text_table(path: Path, columns: Columns, known: Sequence[str] | None) -> _Read:
    text = read_text(path)
    rows = rows_of(text, path, "give a table with a row per step", delimiter)
    first, width = rows[0][1], len(rows[0][1])
    for line, row in rows:
        if len(row) != width:
            raise UserError(
                f"{path}, line {line}: {len(row)} columns, but line {rows[0][0]} has {width}; give every row the same"
            )
    has_header = _is_header(first, rows[1][1] if len(rows) > 1 else first)
    names = [cell.strip() for cell in first] if has_header else [str(index) for index in range(width)]
    body = rows[1:] if has_header else rows
    if not body:
        raise UserError(f"{path}: a header without rows; give a row per step")
    notes: list[str] = []
    if has_header and len(body) > 1 and _are_units(body[0][1], body[1][1]):
        notes.append(f"line {body[0][0]} has units ({', '.join(filter(None, map(str.strip, body[0][1])))}): left out")
        body = body[1:]
    divided = {index: splits for index in range(width) if (splits := splits_of([row[index] for _, row in body]))}
    dividing = next(iter(divided), None)
    if columns is None:
        rows_below = [row for _, row in body]
        firsts = (next((row[at] for row in rows_below if not is_missing(row[at])), "") for at in range(width))
        chosen = [at for at, cell in enumerate(firsts) if is_meant_as_number(cell)]
        if not chosen:
            raise UserError(f"{path}, line {body[0][0]}: no numeric column; the columns are {', '.join(names)}")
        chosen = _without_numbering(rows_below, names, chosen, known, notes, dividing)
        if not chosen:
            pairs = zip(body[0][1], names, strict=True)
            example = next((f", such as {cell!r} in {name}" for cell, name in pairs if not _is_value(cell)), "")
            raise UserError(
                f"{path}: no column of values is left: {'; '.join(notes)}{example}; sentences in a column are scored"
                " with `elman score RUN FILE --column NAME`, and trained on as a text with one in each line"
            )
    else:
        chosen = [_index(column, names, path) for column in columns]
    found = _names(path, names, chosen)
    cells = [[row[index] for _, row in body] for index in chosen]
    marks = decimal_marks(cells, found, path, delimiter(first_row(text)) or " ")
    each = list(zip(found, marks, cells, strict=True))
    if commas := [name for name, mark, column in each if mark == "," and any("," in cell for cell in column)]:
        notes.append(f"commas are decimal marks in column{'s' * (len(commas) > 1)} {', '.join(commas)}")
    lines = [line for line, _ in body]
    values = [
        [_value(cell, mark, path, line, name) for line, cell in zip(lines, column, strict=True)]
        for name, mark, column in each
    ]
    dated = [read_dates([row[at] for _, row in body], names[at]) for at in range(width) if at not in chosen]
    dates, doubts = min(dated, key=lambda one: (one[0] is None, not one[1]), default=(None, []))
    notes += doubts
    series = np.ascontiguousarray(np.array(values, np.float64).T)
    splits = None if dividing is None else divided.get(dividing)
    return Table(found, series, dates, splits), "line", lines, notes


def _is_header(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether a row has names: words, or dates above numbers."""
    above = (is_date(one) and number(other) is not None for one, other in zip(first, second, strict=True))
    return not all(map(_is_value, first)) or any(above)


def _are_units(row: Sequence[str], below: Sequence[str]) -> bool:
    """Whether a row has no number and no date, and words above numbers or dates, as units stand below names."""
    has_word = any(not _is_value(one) and _is_value(two) and two.strip() for one, two in zip(row, below, strict=True))
    return has_word and not any(is_date(cell) or is_meant_as_number(cell) for cell in row)


def _is_value(cell: str) -> bool:
    """Whether a cell may stand below a header: a number, a date, or a missing value."""
    return is_missing(cell) or is_date(cell) or is_meant_as_number(cell)


def is_meant_as_number(cell: str) -> bool:
    """Whether a cell is a number, or what Python takes for one, such as `inf` and `1_5`, which is refused later."""
    if number(cell) is not None:
        return True
    try:
        return not is_missing(cell) and not is_date(cell) and bool(np.float64(cell) or True)
    except ValueError:
        return False


def delimiter(line: str) -> str | None:
    """The delimiter of a table by its first row; None: white space.

    Tabs, semicolons or blanks between numbers are it, whatever commas the numbers have: those are decimal marks.
    """
    for mark in ("\t", ";", "|", None):
        cells = line.split(mark)
        if len(cells) > 1 and "," in line and all(map(_is_value, cells)):
            return mark
    counts = {mark: line.count(mark) for mark in ("\t", ";", ",", "|")}
    best = max(counts, key=lambda mark: counts[mark])
    return best if counts[best] else None


def _names(path: Path, names: Sequence[str], chosen: Sequence[int]) -> tuple[str, ...]:
    """The names of the columns that are read; raises UserError where two are the same, since figures are by name."""
    found = tuple(names[index] for index in chosen)
    if twice := [name for name in found if found.count(name) > 1]:
        raise UserError(f"{path}: two of the columns that are read are called {twice[0]!r}; give each its own name")
    return found


def _without_numbering(
    rows: Sequence[Sequence[str]],
    names: Sequence[str],
    numeric: list[int],
    known: Sequence[str] | None,
    notes: list[str],
    dividing: int | None,
) -> list[int]:
    """The numeric columns without a first one that numbers the rows; notes name it, and the others left out."""
    shown = [" ".join(name.split()) or f"number {index}" for index, name in enumerate(names)]
    first, chosen = [row[0] for row in rows], numeric
    dated = 0 not in numeric and any(map(is_date, first)) and all(is_missing(cell) or is_date(cell) for cell in first)
    rest = known is not None and len(rows) < FEWEST and [names[index] for index in numeric[1:]] == list(known)
    is_known = known is not None and (names[0] in known or len(known) == len(numeric))
    if len(names) > 1 and numeric[0] == 0 and not is_known and (rest or is_numbering(first)):
        chosen = numeric[1:]
        falls = len(first) > 1 and (number(first[0]) or 0) > (number(first[1]) or 0)
        how = " backwards, which are read as they stand," if falls else ""
        notes.append(
            f"column {shown[0]} numbers the rows{how} and is not modelled; name it in data.columns to model it"
        )
    if dated:
        notes.append(f"column {shown[0]} has dates and is not modelled")
    if others := [shown[index] for index in range(dated, len(names)) if index not in (*numeric, dividing)]:
        left = (cell for index, name in enumerate(shown) if name in others for cell in (row[index] for row in rows[:9]))
        signed = next((cell.strip() for cell in left if _has_sign(cell)), None)
        cure = f" ({signed!r} is no number with its sign: write numbers without signs)" if signed else ""
        notes.append(f"{counted(len(others), 'column')} without numbers left out: {', '.join(others)}{cure}")
    for name, column in ((name, [row[shown.index(name)] for row in rows]) for name in others):
        if in_runs(column):
            values = f"column {name} has {len(set(column)):,} values, each in rows that follow one another"
            notes.append(f"{values}: all rows are read as one series; if it names series, give each a file")
    return chosen


def _has_sign(cell: str) -> bool:
    """Whether a cell is a number but for a sign of per cent or of a currency."""
    plain = "".join(one for one in cell if one not in "%\u2030" and unicodedata.category(one) != "Sc").strip()
    return plain != cell.strip() and number(plain) is not None


def _index(column: str | int, names: Sequence[str], path: Path) -> int:
    if isinstance(column, int):
        if column < len(names):
            return column
    elif column in names:
        return names.index(column)
    raise UserError(f"{path}: data.columns: no column {column!r}; the columns are {', '.join(names)}")


def _value(cell: str, mark: str, path: Path, line: int, name: str) -> float:
    value = number(cell, mark)
    if value is None and is_missing(cell):
        return np.nan
    if value is None or not np.isfinite(value):
        other = f" with {'a comma' if mark == ',' else 'a point'} as decimal mark" if number(cell) is not None else ""
        raise UserError(
            f"{path}, line {line}, column {name}: {cell.strip()!r} is not a finite number{other}; mend the value, or"
            " leave the column out of data.columns"
        )
    return value


def _read_array(path: Path, columns: Columns, known: Sequence[str] | None) -> _Read:  # noqa: ARG001 - by number alone
    arrays = {"": read_npy(path)} if is_npy(path) else read_npz(path)
    if len(arrays) != 1:
        raise UserError(f"{path}: {len(arrays)} arrays ({', '.join(arrays)}); give a file with one array [n] or [n, P]")
    (array,) = arrays.values()
    if array.ndim not in (1, 2) or array.dtype.kind not in "fiu" or not array.size:
        raise UserError(f"{path}: {array.dtype} {list(array.shape)}; a series is an array of numbers [n] or [n, P]")
    values = np.asarray(array, np.float64).reshape(len(array), -1)
    names = [str(index) for index in range(values.shape[1])]
    chosen = list(range(len(names))) if columns is None else [_index(column, names, path) for column in columns]
    found, values = _names(path, names, chosen), values[:, chosen]
    if np.isinf(values).any():
        row, column = np.argwhere(np.isinf(values))[0]
        raise UserError(
            f"{path}, row {row}, column {names[chosen[column]]}: the value is {values[row, column]}; mend it, or remove"
            " the row"
        )
    return Table(found, values), "row", range(len(values)), []


def carried(values: Array) -> Array:
    """Values [n, P] in which a missing one is as the last one before it; NaN where there is none.

    >>> carried(np.array([[np.nan], [1.0], [np.nan], [2.0]])).ravel().tolist()
    [nan, 1.0, 1.0, 2.0]
    """
    if not np.isnan(values).any():
        return values
    last = np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(len(values))[:, None]), axis=0)
    return np.take_along_axis(values, last, axis=0)


def interpolated(values: Array) -> Array:
    """Values [n, P] with missing ones on the line between their neighbours, before and after all as the nearest one.

    >>> interpolated(np.array([[1.0], [np.nan], [np.nan], [7.0], [np.nan]])).ravel().tolist()
    [1.0, 3.0, 5.0, 7.0, 7.0]
    """
    rows = np.arange(len(values))
    known = ~np.isnan(values)
    columns = [np.interp(rows, rows[one], column[one]) for one, column in zip(known.T, values.T, strict=True)]
    return np.stack(columns, axis=1)


_RULES: dict[Missing, tuple[Callable[[Array], Array], str]] = {
    "interpolate": (interpolated, "filled in between their neighbours; they count in figures as if they were measured"),
    "previous": (carried, "filled in by the value before; they count in figures as if they were measured"),
    "drop": (lambda values: values[~np.isnan(values).any(axis=1)], "their rows are left out"),
    "mask": (lambda values: values, "they do not count; the value before, or a linear prediction, is read instead"),
}
"""For each rule how values are read, and what is said."""


def _without_gaps(table: Table, what: str, places: Sequence[int], missing: Missing | None, path: Path) -> Array:
    """Values without missing ones, by a rule; raises UserError where there is none, or the rule leaves nothing.

    The rows are called `what`, and have the numbers `places`.
    """
    values, gaps = table.values, np.isnan(table.values)
    if not gaps.any():
        return values
    parts = []
    for name, column in zip(table.names, gaps.T, strict=True):
        if rows := np.asarray(places)[column].tolist():
            parts.append(f"column {name} at {what if len(rows) > 1 else what[:-1]} {in_ranges(rows)}")
    found = one_line(f"{path}: {counted(int(gaps.sum()), 'value')} missing ({'; '.join(parts)})")
    if missing is None:
        raise UserError(f"{found}; fill them in, remove the rows, or add --missing interpolate, previous, drop or mask")
    if gaps.all(axis=0).any() or (missing in ("drop", "mask") and gaps.any(axis=1).all()):
        raise UserError(f"{found}: nothing would be left; leave the column out of data.columns")
    rule, done = _RULES[missing]
    values = rule(values)
    if missing == "previous" and np.isnan(values).any():
        raise UserError(f"{found}: no value stands before the first; use --missing interpolate, drop or mask")
    notice(f"{found}: {done}")
    return values
