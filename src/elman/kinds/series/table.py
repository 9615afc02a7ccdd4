"""Tables of numbers: CSV and TSV files with or without a header, and NumPy arrays, read as float64 [n, P]."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elman.data.archives import read_npy, read_npz
from elman.data.tables import rows_of
from elman.data.text.utf8 import read_text
from elman.errors import UserError, counted, notice

SUFFIXES = (".csv", ".tsv", ".npy", ".npz")
Array = npt.NDArray[np.float64]
Columns = Sequence[str | int] | None


class Table(NamedTuple):
    """The columns of a file that are read: their names, and their values float64 [n, P], all finite."""

    names: tuple[str, ...]
    values: Array


def read_table(path: Path, columns: Columns = None) -> Table:
    """Read the columns of these names or numbers (the first is 0), in this order; None: all numeric columns.

    Columns whose first value is no number are left out then, and a notice names them. The file is CSV or TSV,
    whose delimiter (comma, semicolon, tab or white space) and header are recognised, or .npy or .npz with one array of
    numbers [n] or [n, P], read without pickle.

    Raises UserError where the file cannot be read, a column is missing, two have one name, or a value is missing or not
    a number.
    """
    return _read_array(path, columns) if path.suffix in (".npy", ".npz") else _read_text_table(path, columns)


def _read_text_table(path: Path, columns: Columns) -> Table:
    rows = rows_of(read_text(path), path, "give a table with a row per step", _delimiter)
    first, width = rows[0][1], len(rows[0][1])
    for number, row in rows:
        if len(row) != width:
            raise UserError(
                f"{path}, line {number}: {len(row)} columns, but line {rows[0][0]} has {width}; give every row the same"
            )
    has_header = any(_number(cell) is None and not _is_missing(cell) for cell in first)
    names = [cell.strip() for cell in first] if has_header else [str(index) for index in range(width)]
    body = rows[1:] if has_header else rows
    if not body:
        raise UserError(f"{path}: a header without rows; give a row per step")
    if columns is None:
        chosen = _numeric([row for _, row in body], width)
        if not chosen:
            cure = "; write decimal points, not commas" if any(map(_has_decimal_comma, body[0][1])) else ""
            raise UserError(f"{path}, line {body[0][0]}: no numeric column; the columns are {', '.join(names)}{cure}")
        if others := [names[index] or f"number {index}" for index in range(width) if index not in chosen]:
            notice(f"{path}: {counted(len(others), 'column')} without numbers left out: {', '.join(others)}")
    else:
        chosen = [_index(column, names, path) for column in columns]
    found = _names(path, names, chosen)
    values = [[_value(row[index], path, number, names[index]) for index in chosen] for number, row in body]
    return Table(found, np.array(values, np.float64))


def _delimiter(line: str) -> str | None:
    """The delimiter of a table by its first row; None: white space.

    Tabs or semicolons between numbers are it, whatever commas the numbers have: those are decimal marks.
    """
    for mark in ("\t", ";"):
        if mark in line and all(_has_decimal_comma(cell) or _number(cell) is not None for cell in line.split(mark)):
            return mark
    counts = {mark: line.count(mark) for mark in ("\t", ";", ",")}
    best = max(counts, key=lambda mark: counts[mark])
    return best if counts[best] else None


def _names(path: Path, names: Sequence[str], chosen: Sequence[int]) -> tuple[str, ...]:
    """The names of the columns that are read; raises UserError where two are the same, since figures are by name."""
    found = tuple(names[index] for index in chosen)
    if twice := [name for name in found if found.count(name) > 1]:
        raise UserError(f"{path}: two of the columns that are read are called {twice[0]!r}; give each its own name")
    return found


def _numeric(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """The columns whose first value, missing ones passed over, is a number."""
    firsts = (next((row[index] for row in rows if not _is_missing(row[index])), "") for index in range(width))
    return [index for index, cell in enumerate(firsts) if _number(cell) is not None]


def _is_missing(cell: str) -> bool:
    """Whether a cell has no value."""
    return cell.strip().lower() in ("", "nan", "na", "null", "none")


def _number(cell: str) -> float | None:
    """The number in a cell; None where there is none. NaN and infinity are numbers here, and refused later."""
    try:
        return float(cell)
    except ValueError:
        return None


def _has_decimal_comma(cell: str) -> bool:
    return cell.count(",") == 1 and _number(cell.replace(",", ".")) is not None


def _index(column: str | int, names: Sequence[str], path: Path) -> int:
    if isinstance(column, int):
        if column < len(names):
            return column
    elif column in names:
        return names.index(column)
    raise UserError(f"{path}: data.columns: no column {column!r}; the columns are {', '.join(names)}")


def _value(cell: str, path: Path, line: int, name: str) -> float:
    value = _number(cell)
    if value is not None and math.isfinite(value):
        return value
    if _is_missing(cell):
        raise UserError(f"{path}, line {line}, column {name}: the value is missing; fill it in, or remove the row")
    raise UserError(
        f"{path}, line {line}, column {name}: {cell.strip()!r} is not a finite number; mend the value, or leave the"
        " column out of data.columns"
    )


def _read_array(path: Path, columns: Columns) -> Table:
    array = _load(path)
    if array.ndim not in (1, 2) or array.dtype.kind not in "fiu" or not array.size:
        raise UserError(f"{path}: {array.dtype} {list(array.shape)}; a series is an array of numbers [n] or [n, P]")
    values = np.asarray(array, np.float64).reshape(len(array), -1)
    names = [str(index) for index in range(values.shape[1])]
    chosen = list(range(len(names))) if columns is None else [_index(column, names, path) for column in columns]
    found, values = _names(path, names, chosen), values[:, chosen]
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise UserError(
            f"{path}, row {row}, column {names[chosen[column]]}: the value is {values[row, column]}; fill it in, or"
            " remove the row"
        )
    return Table(found, values)


def _load(path: Path) -> npt.NDArray[Any]:
    if path.suffix == ".npy":
        return read_npy(path)
    arrays = read_npz(path)
    if len(arrays) != 1:
        raise UserError(f"{path}: {len(arrays)} arrays ({', '.join(arrays)}); give a file with one array [n] or [n, P]")
    return next(iter(arrays.values()))
