"""Minimal pairs: a grammatical sentence, and an ungrammatical one that differs from it in one respect.

Kinds of files: BLiMP's JSON lines (Warstadt et al. 2020), Linzen's sentences with a `.gold` file beside `.text`
(Linzen, Dupoux & Goldberg 2016), templates (`elman.data.templates`), the tables
of verbs that `elman grammar generate` writes, and tables (`elman.data.tables`), under a header or without one.

A header names the columns of the good and of the bad sentence; phenomenon, field and item are used where they are
named, and all other columns are carried along. Without a header the columns are good, bad and optionally phenomenon. A
table that may be meant otherwise is refused: a wrong column would give figures without any sign of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from elman.data.catalog.known import info, is_known, locate_minimal_pairs
from elman.data.tables import Row, in_one_form, named, rows_of
from elman.data.text.utf8 import read_file_lines, read_text
from elman.errors import UserError, counted
from elman.formats import parse_json


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


AGREEMENT = (
    "sentence", "controller", "target", "right", "wrong", "feature", "value", "other", "depth", "levels", "attractors",
)  # fmt: skip
"""The columns of `SPLIT.agreement.tsv`: sentences from 1, positions within a sentence from 0."""

_NUMBER = ("sentence", "noun", "verb", "right", "wrong", "number", "depth", "levels", "attractors")
"""Its columns as long as number was the only feature."""

NAMES = {
    "good": ("good", "grammatical", "acceptable", "correct", "right", "plausible", "expected"),
    "bad": ("bad", "ungrammatical", "unacceptable", "incorrect", "wrong", "implausible", "unexpected"),
    "phenomenon": ("phenomenon", "uid", "construction"),
    "field": ("field", "linguistics_term"),
    "item": ("item", "item_id", "id", "pair", "pair_id", "pairid"),
}
"""What columns are called in headers; columns of sentences also with `sentence` before or after it."""

ADVICE = "give a file of minimal pairs"  # what to do about a file that holds none
_ADVICE = "name the columns in the first line, such as: item TAB good TAB bad TAB phenomenon"


class _Blimp(msgspec.Struct):
    sentence_good: str
    sentence_bad: str
    UID: str = ""
    linguistics_term: str = ""
    pair_id: str | int = msgspec.field(default="", name="pairID")


def read_pairs(names: Iterable[str]) -> list[Pair]:
    """The pairs of files, of all such files in folders, and of known sets such as `blimp`.

    Raises UserError where a file cannot be read or has a line that is no pair.
    """
    return [pair for _, pair in pairs_by_file(names)]


def pairs_by_file(names: Iterable[str]) -> Iterator[tuple[Path, Pair]]:
    """As `read_pairs`, each pair after its file, in which its item is one."""
    return (found for name in names for found in _read(name))


def _read(name: str) -> Iterator[tuple[Path, Pair]]:
    path = locate_minimal_pairs(name) if is_known(name) and info(name).kind == "minimal pairs" else Path(name)
    files = [path]
    if path.is_dir():
        files = [one for one in sorted(path.iterdir()) if one.suffix in (".jsonl", ".gold", ".tsv", ".csv")]
    if not files:
        raise UserError(
            f"{path}: no file of minimal pairs in this folder; give .jsonl (BLiMP), .text with .gold (Linzen), .tsv or"
            " .csv"
        )
    for file in files:
        yield from ((file, pair) for pair in _of_file(file))


def _of_file(file: Path) -> Iterable[Pair]:
    if file.suffix == ".jsonl":
        return _blimp(file)
    if file.suffix == ".toml":
        from elman.data.templates import template_pairs

        return template_pairs(file)
    if file.suffix in (".gold", ".text"):
        return _linzen(file.with_suffix(".text"), file.with_suffix(".gold"))
    return read_pair_table(file)


def _blimp(path: Path) -> Iterator[Pair]:
    for number, line in enumerate(read_file_lines(path, ADVICE), start=1):
        if not line.strip():
            continue
        try:
            raw: dict[str, Any] = parse_json(line)
            record = msgspec.convert(raw, _Blimp)
        except ValueError:
            raise UserError(
                f"{path}:{number}: not a record with sentence_good and sentence_bad; write one JSON object per line"
            ) from None
        for key in ("sentence_good", "sentence_bad"):
            if not raw[key].strip():
                raise UserError(f"{path}:{number}: {key} is empty; write both sentences of the pair")
        plain = {key: value for key, value in raw.items() if isinstance(value, str | int | float)}
        yield Pair(
            record.sentence_good,
            record.sentence_bad,
            record.UID or path.stem,
            record.linguistics_term,
            item=str(record.pair_id) or str(number),
            others=tuple(
                (key, str(value)) for key, value in plain.items() if key not in _Blimp.__struct_encode_fields__
            ),
        )


def _linzen(text: Path, gold: Path) -> Iterator[Pair]:
    sentences, answers = read_file_lines(text, ADVICE), read_file_lines(gold, ADVICE)
    if len(sentences) != len(answers):
        raise UserError(
            f"{gold}: {len(answers):,} lines, but {text} has {len(sentences):,}; give files that belong together"
        )
    for number, (sentence, answer) in enumerate(zip(sentences, answers, strict=True), start=1):
        cells, words = answer.split("\t"), sentence.split()
        if len(cells) != 4 or not (cells[0].isdecimal() and cells[3].isdecimal()):
            raise UserError(
                f"{gold}:{number}: found {answer!r}; write: index TAB right form TAB wrong form TAB attractors"
            )
        index, right, wrong, attractors = int(cells[0]), cells[1], cells[2], int(cells[3])
        if index >= len(words) or words[index].lower() != right.lower():
            found = repr(words[index]) if index < len(words) else f"only {len(words)} words"
            raise UserError(f"{gold}:{number}: word {index} of the sentence should be {right!r}, found {found}")
        if (verb := words[index]) != right:  # both forms in lower or upper case, or with a capital
            other = wrong.lower() if verb.islower() else wrong.upper() if verb.isupper() else wrong.capitalize()
            right, wrong = verb, other
        before = " ".join(words[:index])
        kind = counted(attractors, "attractor")
        good, bad, field = f"{before} {right}", f"{before} {wrong}", "subject-verb agreement"
        yield Pair(good, bad, kind, field, whole=False, tokenised=True, item=str(number))


def read_pair_table(path: Path) -> list[Pair]:
    """The pairs of a table; raises UserError where a line is no pair, or the columns may be meant otherwise."""
    (_, header), *rest = rows = rows_of(read_text(path, ADVICE), path, ADVICE)
    if tuple(header) in (AGREEMENT, _NUMBER):
        return list(_agreement(path, header, rest))
    roles = [_role(cell) for cell in header]
    if not set(roles) & {"good", "bad"} and not (len(set(roles) & set(NAMES)) > 1 and all(header)):
        _require_plain(path, rows)
        return [
            Pair(good, bad, others[0].strip() if others else path.stem, item=str(number))
            for number, (good, bad, *others) in rows
        ]
    for role in ("good", "bad"):
        if roles.count(role) != 1:
            found = f"{roles.count(role)} columns" if role in roles else "no column"
            raise UserError(
                f"{path}:1: the header {', '.join(header)} has {found} for the {role} sentences; call them good and bad"
            )
    table = named(path, roles, rest)
    return [_pair(path, number, dict(zip(table.columns, row, strict=True))) for number, row in table.rows]


def _agreement(path: Path, header: Sequence[str], rows: Sequence[Row]) -> Iterator[Pair]:
    """The pairs of the sentences beside a table that `elman grammar generate` wrote, each with the words before it.

    Where the controller follows the target, both sentences end with the controller.
    """
    text = path.with_name(path.name.removesuffix(".agreement.tsv") + ".txt")
    sentences = read_file_lines(text, ADVICE) if text != path and text.is_file() else []
    for number, cells in rows:
        row = dict(zip(header, cells, strict=True))
        at, controller, target = int(row["sentence"]) - 1, int(cells[1]), int(cells[2])
        words = sentences[at].split() if at < len(sentences) else []
        if words[target : target + 1] != [row["right"]]:
            raise UserError(f"{path}:{number}: {row['right']!r} is not word {target} of sentence {at + 1} of {text}")
        before, after = words[:target], words[target + 1 : controller + 1]
        good, bad = (" ".join([*before, row[form], *after]) for form in ("right", "wrong"))
        others = tuple((name, row[name]) for name in header[5:])
        kind = row.get("feature", "agreement")
        yield Pair(good, bad, kind, whole=False, tokenised=True, item=str(number), others=others)


def until_difference(pair: Pair) -> Pair:
    """A pair cut after the first word in which its sentences differ, whose end is scored too.

    What both begin with has one probability, so that the first different words are compared, given it (the one-prefix
    method of Warstadt et al. 2020). Where one sentence is the beginning of the other the pair remains as it is.
    """
    good, bad = pair.good.split(), pair.bad.split()
    at = next((at for at, (one, other) in enumerate(zip(good, bad, strict=False)) if one != other), None)
    if at is None:
        return pair
    return pair._replace(good=" ".join(good[: at + 1]), bad=" ".join(bad[: at + 1]), whole=False)


def _role(cell: str) -> str:
    """What a heading names: a role of `NAMES`, otherwise itself."""
    name = in_one_form(cell)
    bare = name.removeprefix("sentence_").removesuffix("_sentence")
    found = (role for role, names in NAMES.items() if name in names or (bare in names and role in ("good", "bad")))
    return next(found, cell.strip())


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
