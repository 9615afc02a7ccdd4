"""Tables as text: columns separated by tabs, or where the first row has none by commas or semicolons.

A quoted cell may hold line breaks, delimiters and doubled quotation marks, as in CSV (RFC 4180).
"""

import csv
import io
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from elman.data.lines import lines_of, with_breaks
from elman.errors import UserError, counted, notice

Row: TypeAlias = tuple[int, list[str]]  # the number of the first line of a row, and its cells
_SEPARATOR = re.compile(r"sep=(.)(?=[\r\n])", re.IGNORECASE)
"""What a spreadsheet may write in a line before the header: the delimiter."""

_JSON = re.compile(r'\ufeff?\s*(?:\[\s*)?\{\s*"')  # how an object begins, or a list of them

_SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("valid", "validation", "val", "dev", "development"), "valid"),
    **dict.fromkeys(("test", "testing"), "test"),
}
"""What the cells of a column say that divides rows into splits, in lower case."""

_LONGEST_HEADER = 100  # lines that a header has at most


class Table(NamedTuple):
    """The names of the columns, and the rows, which have a cell for each."""

    columns: list[str]
    rows: list[Row]


def _usual_delimiter(row: str) -> str:
    return next((mark for mark in "\t,;" if mark in row), "\t")


def rows_of(
    text: str,
    name: str | Path,
    advice: str = "give a table with a header",
    delimiter_of: Callable[[str], str | None] = _usual_delimiter,
    *,
    cut: bool = False,
) -> list[Row]:
    """The rows that are not blank; `delimiter_of` gives the delimiter by the first row, None is white space.

    `cut`: the text is the beginning of a file, and reading ends without an error before a quotation that is not closed.

    Between tabs cells are quoted only where all quotation marks can be read so; otherwise every mark belongs to the
    text. Raises UserError, which ends with `advice`, where all cells are blank and of JSON, and where between other
    delimiters a quotation mark is wrong.
    """
    empty = UserError(f"{name}: the file is empty; {advice}")
    if not text.strip():
        raise empty
    if _JSON.match(text):
        raise UserError(f"{name}: this is JSON, not a table; {advice}")
    text, above = _without_comments(text)
    if above and name:
        notice(f"{name}: {counted(above, 'line')} above the header, of which the first begins with #, left out")
    delimiter = delimiter_of(first_row(text))
    if named_first := _SEPARATOR.match(text):
        delimiter, text = named_first[1], text[named_first.end() :]
    if delimiter is None:
        rows = [(number, line.split()) for number, line in enumerate(lines_of(text), start=1)]
    elif delimiter == "\t":
        rows = _between_tabs(text, name, cut=cut)
    else:
        rows = list(_as_csv(text, name, delimiter, cut=cut))
    if rows := [(number + above, cells) for number, cells in rows if any(cell.strip() for cell in cells)]:
        return rows
    raise empty


def _without_comments(text: str) -> tuple[str, int]:
    """A table without lines above its header that begin with # and have not its cells; and how many there were."""
    lines = with_breaks(text)
    above = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith("#")), 0)
    comments, header = [line for line in lines[:above] if line.strip()], lines[above]
    mark = _usual_delimiter(header)
    if not comments or any(line.count(mark) == header.count(mark) > 0 for line in comments):
        return text, 0
    return "".join(lines[above:]), above


def first_row(text: str) -> str:
    """The first row that is not blank, of several lines where a quoted cell has them."""
    lines = [line for line in lines_of(_without_comments(text)[0]) if line.strip()]
    for size in range(1, min(len(lines), _LONGEST_HEADER) + 1):
        if (row := "\n".join(lines[:size])).count('"') % 2 == 0:
            return row
    return lines[0]


def _between_tabs(text: str, name: str | Path, *, cut: bool) -> list[Row]:
    plain = [(number, line.split("\t")) for number, line in enumerate(lines_of(text), start=1)]
    if '"' not in text:
        return plain
    try:
        quoted = list(_as_csv(text, name, "\t", cut=cut))
    except UserError:
        return plain
    # A quotation that begins in one cell and ends in another one, of a later line, is none of a spreadsheet.
    across = "\t" if "\t" in text else "\n"
    return plain if any(across in cell for _, cells in quoted for cell in cells) else quoted


def _as_csv(text: str, name: str | Path, delimiter: str, *, cut: bool) -> Iterator[Row]:
    reader, begin = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), 1
    try:
        for cells in reader:
            yield begin, cells
            begin = reader.line_num + 1
    except csv.Error as error:
        if cut:
            return
        raise UserError(
            f"{name}:{begin}: a quotation mark in a cell is not doubled, or never closed ({error}); quote cells as CSV"
        ) from None


def splits_of(cells: Sequence[str]) -> list[str] | None:
    """The split that each cell of a column names, in the names of `SPLITS`; None where one names none.

    >>> splits_of(["Train", "dev"]), splits_of(["train", "a word"]), splits_of(["test", "dev"])
    (['train', 'valid'], None, None)
    """
    found = [_SPLITS.get(cell.strip().lower(), "") for cell in cells]
    return found if "train" in found and len(set(found)) > 1 and "" not in found else None


def in_runs(column: Sequence[Sequence[str]]) -> bool:
    """Whether cells stay alike for two rows or more on average, and none returns."""
    runs = [cell for cell, _ in itertools.groupby(map(tuple, column))]
    return 1 < len(set(runs)) == len(runs) <= len(column) // 2


def in_one_form(heading: str) -> str:
    """A heading by which columns are recognised: in lower case, words at underscores (`Item-ID` as `item_id`)."""
    return "_".join(heading.lower().replace("-", " ").replace("_", " ").split())


def named(name: str | Path, columns: Sequence[str], rows: Sequence[Row]) -> Table:
    """The table of rows under a header; raises UserError where a name is missing or twice, or a row does not fit."""
    names = [" ".join(lines_of(column.strip())) for column in columns]
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
