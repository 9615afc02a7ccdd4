"""Tables as text: columns separated by tabs, in `.csv` files by commas, under a header or without one."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from elman.data.text.utf8 import read_text
from elman.errors import UserError

Row: TypeAlias = tuple[int, list[str]]
"""The number of a line, and its cells."""


class Table(NamedTuple):
    """The names of the columns, and the rows, which have a cell for each."""

    columns: list[str]
    rows: list[Row]

    def column(self, name: str) -> list[str]:
        """The cells of a column."""
        place = self.columns.index(name)
        return [cells[place] for _, cells in self.rows]


def lines_of(path: Path, advice: str = "give a table") -> list[str]:
    """The lines of a file; raises UserError, which ends with `advice`, where it cannot be read or is blank."""
    text = read_text(path, advice)
    if not text.strip():
        raise UserError(f"{path}: the file is empty; {advice}")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def rows_of(path: Path, advice: str = "give a table") -> Iterator[Row]:
    """The lines of a table that are not blank; quotation marks belong to the text but in `.csv` files."""
    lines = lines_of(path, advice)
    if path.suffix == ".csv":
        reader = csv.reader(f"{line}\n" for line in lines)
        yield from ((reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells))
    else:
        yield from ((number, line.split("\t")) for number, line in enumerate(lines, start=1) if line.strip())


def named(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> Table:
    """The table of rows under a header; raises UserError where a name is missing or twice, or a row does not fit."""
    names = [name.strip() for name in columns]
    for name in names:
        if not name or names.count(name) > 1:
            found = f"has the column {name!r} twice" if name else "has a column without a name"
            raise UserError(f"{path}:1: the header {found}; give each column a name of its own")
    if not rows:
        raise UserError(f"{path}: a header and no row; give at least one")
    for number, cells in rows:
        if len(cells) != len(names):
            raise UserError(
                f"{path}:{number}: {len(cells)} columns, but the header has {len(names)}; write one cell per column"
            )
    return Table(names, [(number, [cell.strip() for cell in cells]) for number, cells in rows])


def read_table(path: Path, needed: str, option: str) -> Table:
    """A table under a header with the column `needed`, which `option` names; raises UserError where it lacks that."""
    (_, header), *rows = rows_of(path)
    if needed not in [name.strip() for name in header]:
        raise UserError(f"{path}:1: no column {needed!r}; it has {', '.join(header)}; name one with {option}")
    return named(path, header, rows)
