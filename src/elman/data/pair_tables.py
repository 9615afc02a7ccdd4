"""Tables of minimal pairs (`elman.data.tables`), under a header or without one.

A header names the columns of the good and of the bad sentence; phenomenon, field and item are used where they are
named, and all other columns are carried along. Without a header the columns are good, bad and optionally phenomenon. A
table that may be meant otherwise is refused: a wrong column would give figures without any sign of it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from elman.data.tables import Row, in_one_form, named, rows_of
from elman.data.text.utf8 import read_text
from elman.errors import UserError


class Pair(NamedTuple):
    """A minimal pair, of Linzen's sentences the words before the verb, and the verb.

    `phenomenon` is the row of the table to which it belongs, `field` a wider heading, such as BLiMP's linguistics term.
    Where both are `whole` sentences their end is scored as well; white space already separates the tokens where they
    are `tokenised`. `item` names the pair within its file, by default by the number of its line; `others` are its
    further columns, (name, value) each.
    """

    good: str
    bad: str
    phenomenon: str
    field: str = ""
    whole: bool = True
    tokenised: bool = False
    item: str = ""
    others: tuple[tuple[str, str], ...] = ()


NAMES = {
    "good": ("good", "grammatical", "acceptable", "correct", "right", "plausible", "expected"),
    "bad": ("bad", "ungrammatical", "unacceptable", "incorrect", "wrong", "implausible", "unexpected"),
    "phenomenon": ("phenomenon", "uid", "construction"),
    "field": ("field", "linguistics_term"),
    "item": ("item", "item_id", "id", "pair", "pair_id", "pairid"),
}
"""What columns are called in headers; those of sentences also with `sentence` before or after it."""

ADVICE = "give a file of minimal pairs"
"""What to do about a file that holds none."""

_ADVICE = "name the columns in the first line, such as: item TAB good TAB bad TAB phenomenon"


def read_pair_table(path: Path) -> list[Pair]:
    """The pairs of a table; raises UserError where a line is no pair, or the columns may be meant otherwise."""
    (_, cells), *rest = rows = rows_of(read_text(path, ADVICE), path, ADVICE)
    roles = _roles(path, cells)
    if roles is not None:
        table = named(path, roles, rest)
        return [_pair(path, number, dict(zip(table.columns, row, strict=True))) for number, row in table.rows]
    _require_plain(path, rows)
    return [
        Pair(good, bad, others[0].strip() if others else path.stem, item=str(number))
        for number, (good, bad, *others) in rows
    ]


def _role(cell: str) -> str:
    """What a heading names: a role of `NAMES`, otherwise itself."""
    name = in_one_form(cell)
    bare = name.removeprefix("sentence_").removesuffix("_sentence")
    found = (role for role, names in NAMES.items() if name in names or (bare in names and role in ("good", "bad")))
    return next(found, cell.strip())


def _roles(path: Path, cells: Sequence[str]) -> list[str] | None:
    """The role of every column if the first line is a header; None if it is a pair."""
    roles = [_role(cell) for cell in cells]
    if not set(roles) & {"good", "bad"} and not (len(set(roles) & set(NAMES)) > 1 and all(cells)):
        return None
    for role in ("good", "bad"):
        if roles.count(role) != 1:
            found = f"{roles.count(role)} columns" if role in roles else "no column"
            raise UserError(
                f"{path}:1: the header {', '.join(cells)} has {found} for the {role} sentences; call them good and bad"
            )
    return roles


def _pair(path: Path, number: int, cells: dict[str, str]) -> Pair:
    for role in ("good", "bad"):
        if not cells[role]:
            raise UserError(f"{path}:{number}: the {role} sentence is empty; write both sentences of the pair")
    return Pair(
        cells["good"],
        cells["bad"],
        cells.get("phenomenon") or path.stem,
        cells.get("field", ""),
        item=cells.get("item") or str(number),
        others=tuple((name, value) for name, value in cells.items() if name not in NAMES),
    )


def _require_plain(path: Path, rows: Sequence[Row]) -> None:
    """Raises UserError where columns without names are not clearly good, bad and optionally phenomenon."""
    for number, cells in rows:
        if len(cells) not in (2, 3) or not all(cell.strip() for cell in cells):
            found = repr("\t".join(cells))
            raise UserError(f"{path}:{number}: found {found}; write good TAB bad [TAB phenomenon], or {_ADVICE}")
    sentences = [cells[:2] for _, cells in rows]
    words = [len(cell.split()) > 1 for pair in sentences for cell in pair]
    if len(rows) > 1 and not any(words[:2]) and all(words[2:]):
        line = "\t".join(rows[0][1])
        raise UserError(f"{path}:1: {line!r} may be a header or a pair; call its columns good and bad, or leave it out")
    labels = [cells[0].strip() for _, cells in rows]
    if all(label.isdecimal() for label in labels) or _shared(rows, 0, 1) < _shared(rows, 1, 2):
        raise UserError(
            f"{path}:{rows[0][0]}: the first column ({labels[0]!r}) does not look like the good sentence; {_ADVICE}"
        )


def _shared(rows: Sequence[Row], one: int, other: int) -> int:
    """How many words two columns share, over the lines that have both."""
    both = [cells for _, cells in rows if len(cells) > other]
    return sum(len(set(cells[one].split()) & set(cells[other].split())) for cells in both)
