"""Tables as text: columns separated by tabs, or where the first line has none by commas or semicolons."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from elman.data.text.utf8 import read_text
from elman.errors import UserError

Row: TypeAlias = tuple[int, list[str]]
"""The number of the first line of a row, and its cells."""

_QUOTED = re.compile(r'"(?:[^"]|"")*"')


class Table(NamedTuple):
    """The names of the columns, and the rows, which have a cell for each."""

    columns: list[str]
    rows: list[Row]


def lines_of(path: Path, advice: str = "give a table") -> list[str]:
    """The lines of a file; raises UserError, which ends with `advice`, where it cannot be read or is blank."""
    text = read_text(path, advice)
    if not text.strip():
        raise UserError(f"{path}: the file is empty; {advice}")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def rows_of(text: str, name: str | Path, advice: str = "give a table with a header") -> Iterator[Row]:
    """The rows that are not blank.

    Between commas and semicolons cells may be quoted as in CSV. Between tabs quotation marks belong to the text, except
    round a whole cell whose own marks are doubled, as spreadsheets write it. Raises UserError, which ends with
    `advice`, where the text is blank, and where a quotation mark is wrong.
    """
    if not text.strip():
        raise UserError(f"{name}: the file is empty; {advice}")
    first = next(line for line in text.splitlines() if line.strip())
    delimiter = next((mark for mark in "\t,;" if mark in first), "\t")
    rows = _between_tabs(text) if delimiter == "\t" else _as_csv(text, name, delimiter)
    return ((number, cells) for number, cells in rows if any(cell.strip() for cell in cells))


def _between_tabs(text: str) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), start=1):
        yield number, [_unquoted(cell) for cell in line.removesuffix("\r").split("\t")]


def _unquoted(cell: str) -> str:
    return cell[1:-1].replace('""', '"') if _QUOTED.fullmatch(cell) else cell


def _as_csv(text: str, name: str | Path, delimiter: str) -> Iterator[Row]:
    reader, begin = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), 1
    try:
        for cells in reader:
            yield begin, cells
            begin = reader.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"{name}:{begin}: a quotation mark in a cell is not doubled, or never closed ({error}); quote cells as CSV"
        ) from None


def in_one_form(heading: str) -> str:
    """A heading by which columns are recognised: in lower case, words at underscores (`Item-ID` as `item_id`)."""
    return "_".join(heading.lower().replace("-", " ").replace("_", " ").split())


def named(name: str | Path, columns: Sequence[str], rows: Sequence[Row]) -> Table:
    """The table of rows under a header; raises UserError where a name is missing or twice, or a row does not fit."""
    names = [column.strip() for column in columns]
    for column in names:
        if not column or names.count(column) > 1:
            found = f"has the column {column!r} twice" if column else "has a column without a name"
            raise UserError(f"{name}:1: the header {found}; give each column a name of its own")
    if not rows:
        raise UserError(f"{name}: a header and no row; give at least one")
    for number, cells in rows:
        if len(cells) != len(names):
            raise UserError(
                f"{name}:{number}: {len(cells)} cells, but the header has {len(names)}; write one cell per column"
            )
    return Table(names, [(number, [cell.strip() for cell in cells]) for number, cells in rows])
