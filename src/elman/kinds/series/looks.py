"""What series look like: arrays and tables of numbers."""

import csv
from collections.abc import Sequence

from elman.data.kinds import Look, Seen, looks

ORDER = 1


def claim(seen: Seen) -> Look | None:
    """An array of numbers, or rows of them."""
    if seen.head.startswith(b"\x93NUMPY"):
        return looks("series", "an array of numbers (.npy)")
    if seen.arrays and not any(name.endswith("_roll") for name in seen.arrays):
        return looks("series", "arrays of numbers (.npz)")
    if _is_table(seen.suffix, seen.rows):
        return looks("series", "a table of numbers", "text", *(["pairs"] if seen.in_two_columns else []))
    return None


def _is_table(suffix: str, lines: Sequence[str]) -> bool:
    """Whether lines but the first are rows of equally many cells: all of them numbers, in .csv and .tsv one of them."""
    if not lines:
        return False
    second = lines[1] if len(lines) > 1 else lines[0]
    mark = max("\t;,", key=second.count)
    parted = second.count(mark) > 0
    cells = list(csv.reader([f"{line}\n" for line in lines], delimiter=mark)) if parted else [*map(str.split, lines)]
    if any("\n" in cell for cell in cells[-1]):
        cells.pop()  # the head may end within it
    cells = cells[1:] or cells
    if len({len(row) for row in cells}) != 1:
        return False
    numeric = [all(_is_number(cell) for cell in column) for column in zip(*cells, strict=True)]
    return any(numeric) if suffix in (".csv", ".tsv") else all(numeric)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell.strip().lower() in ("", "na", "null", "none")
    return True
