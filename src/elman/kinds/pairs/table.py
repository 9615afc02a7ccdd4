"""Tables of pairs: which columns hold sources and targets, which one divides the rows into splits.

A column of text has words in most of its cells, which repeat little, and are no numbers, dates, addresses or names of
items (`item-12`). The first two are source and target.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from elman.data.lines import lines_of
from elman.data.numbers import is_date, number
from elman.data.tables import Row, in_one_form, rows_of, splits_of
from elman.errors import UserError, notice, one_line

MOST = 0.9  # the share of cells by which columns are recognised
FEWEST, VARIED = 8, 5  # rows of a table at least, and rows for each value of a column of text at most

_HEADINGS = (
    "source target src tgt trg input output question answer query response text translation original reference"
    " sentence sentence1 sentence2 word words phrase english french german spanish italian japanese chinese"
    " review label class category sentiment"
)
"""Words of which the names of columns of pairs consist, whatever stands below."""

_SENTENCE_MARKS = re.compile("[.!?\u3002\uff01\uff1f\u061f\u0964]")
_NAME = re.compile(r"\S*[0-9/_]\S*")


class RawPair(NamedTuple):
    source: str
    target: str


class Line(NamedTuple):
    """A pair, the number of its line, and the split that its line names."""

    number: int
    pair: RawPair
    split: str = "all"


class PairColumns(NamedTuple):
    """Which column is which; `others` are left out; `header`: the first row has names."""

    source: int
    target: int
    split: int | None
    others: tuple[int, ...]
    header: bool


def pairs_mark(suffix: str, lines: Sequence[str]) -> str | None:
    """What divides the cells of lines that may be a table of pairs; None: they are lines of two columns, or no table.

    Commas and semicolons divide the cells of .csv files alone.
    """
    rows = [line for line in lines if line.strip()]
    if suffix.lower() == ".csv" and rows and "\t" not in rows[0]:
        return next((mark for mark in ",;" if mark in rows[0]), None)
    quoted = any('"' in line and "\t" not in line for line in rows)
    tabs = Counter(line.count("\t") for line in rows if not quoted or "\t" in line)
    ((usual, _),) = tabs.most_common(1) or [(0, 0)]
    return "\t" if usual > 1 or (usual == 1 and quoted) else None


def columns_of(rows: Sequence[Row]) -> PairColumns | None:
    """The columns of pairs; None where rows are few, or of other widths, or fewer than two columns are of text."""
    width = Counter(len(cells) for _, cells in rows).most_common(1)[0][0] if rows else 0
    even = [[cell.strip() for cell in cells] for _, cells in rows if len(cells) == width]
    if width < 2 or len(even) < FEWEST or len(even) < MOST * len(rows):
        return None
    first, columns = even[0], list(zip(*even[1:], strict=True))
    texts = [index for index, column in enumerate(columns) if _is_text(column) or (width == 2 and are_headings(first))]
    if len(texts) < 2:
        return None
    split = next((index for index, column in enumerate(columns) if splits_of(column)), None)
    others = tuple(index for index in range(width) if index not in (*texts[:2], split))
    return PairColumns(texts[0], texts[1], split, others, _is_header(first, columns, texts, split))


def _is_text(column: Sequence[str]) -> bool:
    lettered = (cell for cell in column if any(map(str.isalpha, cell)) and not _NAME.fullmatch(cell))
    words = sum(number(cell) is None and not is_date(cell) for cell in lettered)
    return words >= MOST * len(column) and len(set(column)) * VARIED >= len(column)


def are_headings(names: Sequence[str]) -> bool:
    """Whether all names are known ones of columns of pairs, each another one."""
    found = [in_one_form(name) for name in names]
    known = all(word in _HEADINGS.split() for name in found for word in name.split("_"))
    return known and len(set(found)) == len(found)


def _is_header(first: Sequence[str], columns: Sequence[Sequence[str]], texts: Sequence[int], split: int | None) -> bool:
    """Whether a row has names: known ones, one above numbers or splits, or shorter ones than all sentences below.

    Names with digits (`text_1`) stand above words too.
    """
    numbers = [index for index, column in enumerate(columns) if all(number(cell) is not None for cell in column)]
    if any(number(first[index]) is None for index in numbers):
        return True
    if split is not None:
        return splits_of([first[split], *columns[split]]) is None
    names = [first[index] for index in texts[:2]]
    if are_headings(names) or all(map(_NAME.fullmatch, names)):
        return True
    sizes = [min(len(cell.split()) for cell in columns[index]) for index in texts[:2]]
    return not any(map(_SENTENCE_MARKS.search, names)) and all(
        len(name.split()) < size for name, size in zip(names, sizes, strict=True)
    )


def pair_lines(path: Path, lines: Sequence[str]) -> list[Line]:
    """The pairs of lines `source TAB target`, or of a table; raises UserError where a line has another form."""
    if table := _table(path, lines):
        return table
    pairs, last = [], max((place for place, line in enumerate(lines, start=1) if line.strip()), default=0)
    for place, line in enumerate(lines[:last], start=1):
        columns = [column.strip() for column in line.split("\t")] if line.strip() else ["", ""]
        if len(columns) != 2:
            found = "no tab" if len(columns) == 1 else f"{len(columns) - 1} tabs"
            raise UserError(f"{path}:{place}: {found}; every line is a source, one tab and a target")
        pairs.append(Line(place, RawPair(*columns)))
    return _without_header(pairs, path)


def _without_header(lines: list[Line], path: Path) -> list[Line]:
    """Lines of two columns without a first one that names them, which a notice reports; one that may is named too."""
    first, columns = lines[0].pair if lines else ("", ""), list(zip(*(line.pair for line in lines[1:]), strict=True))
    if len(lines) < 2 or not _is_header(first, columns, (0, 1), None):
        return lines
    known, names = are_headings(first), f"line {lines[0].number} names the columns ({' and '.join(first)})"
    if known:
        notice(one_line(f"{path}: {names} and is no pair; left out"))
    elif len(lines) > FEWEST:
        notice(one_line(f"{path}: take the first line out if {names}; it is read as a pair"))
    return lines[known:]


def _table(path: Path, lines: Sequence[str]) -> list[Line]:
    """The pairs of a table with other columns too, with quoted cells or with commas; none where it is no table."""
    mark = pairs_mark(path.suffix, lines)
    if mark is None:
        return []
    rows = rows_of("\n".join(lines), path, delimiter_of=lambda _: mark)
    if mark == "\t" and all(len(cells) == 2 for _, cells in rows):
        return _without_header([Line(at, _pair(cells)) for at, cells in rows], path)
    found = columns_of(rows)
    if found is None:
        return []
    width = len(rows[0][1])
    if wrong := next((row for row in rows if len(row[1]) != width), None):
        raise UserError(
            f"{path}:{wrong[0]}: {len(wrong[1])} cells, but the first row has {width}; give every row the same"
        )
    names = rows[0][1] if found.header else [str(index) for index in range(width)]
    left = f"; left out are {', '.join(names[index] for index in found.others)}" if found.others else ""
    where = "" if found.split is None else f", splits in {names[found.split]}"
    notice(
        one_line(
            f"{path}: a table; sources are in column {names[found.source]}, targets in {names[found.target]}"
            f"{where}{left}"
        )
    )
    body = rows[found.header :]
    splits = splits_of([cells[found.split] for _, cells in body]) if found.split is not None else None
    return [
        Line(at, _pair([cells[found.source], cells[found.target]]), split)
        for (at, cells), split in zip(body, splits or ["all"] * len(body), strict=True)
    ]


def _pair(cells: Sequence[str]) -> RawPair:
    """A pair in one line each: quoted cells may have several."""
    return RawPair(*(" ".join(lines_of(cell.strip())) for cell in cells))
