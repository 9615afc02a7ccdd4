"""Minimal pairs: a grammatical sentence, and an ungrammatical one that differs from it in one respect.

Three kinds of files: BLiMP's JSON lines (Warstadt et al. 2020), Linzen's sentences with a `.gold` file beside `.text`
(Linzen, Dupoux & Goldberg 2016), and tab-separated columns: good, bad and optionally the phenomenon.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from elman.data.catalog.prepare import info, is_known, locate_pairs
from elman.data.text.utf8 import read_text
from elman.errors import UserError


class Pair(NamedTuple):
    """A minimal pair, of Linzen's sentences the words before the verb, and the verb.

    `phenomenon` is the row of the table to which it belongs, `field` a wider heading, such as BLiMP's linguistics term.
    Where both are `whole` sentences their end is scored as well; white space already separates the tokens where they
    are `tokenised`.
    """

    good: str
    bad: str
    phenomenon: str
    field: str = ""
    whole: bool = True
    tokenised: bool = False


class _Blimp(msgspec.Struct):
    sentence_good: str
    sentence_bad: str
    UID: str = ""
    linguistics_term: str = ""


def read_pairs(names: Iterable[str]) -> list[Pair]:
    """The pairs of files, of all such files in folders, and of known sets such as `blimp`.

    Raises UserError where a file cannot be read or has a line that is no pair.
    """
    return [pair for name in names for path in _files(name) for pair in _read(path)]


def _files(name: str) -> list[Path]:
    path = locate_pairs(name) if is_known(name) and info(name).kind == "pairs" else Path(name)
    if not path.is_dir():
        return [path]
    found = [one for one in sorted(path.iterdir()) if one.suffix in (".jsonl", ".gold", ".tsv")]
    if not found:
        raise UserError(
            f"{path}: no file of minimal pairs in this folder; give .jsonl (BLiMP), .text with .gold (Linzen) or .tsv"
        )
    return found


def _read(path: Path) -> Iterator[Pair]:
    if path.suffix == ".jsonl":
        return _blimp(path)
    if path.suffix in (".gold", ".text"):
        return _linzen(path.with_suffix(".text"), path.with_suffix(".gold"))
    return _table(path)


def _lines(path: Path) -> list[str]:
    lines = read_text(path, "give a file of minimal pairs").splitlines()
    if not any(line.strip() for line in lines):
        raise UserError(f"{path}: the file is empty; give at least one pair")
    return lines


def _rows(path: Path) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(_lines(path), start=1) if line.strip())


def _blimp(path: Path) -> Iterator[Pair]:
    for number, line in _rows(path):
        try:
            record = msgspec.json.decode(line, type=_Blimp)
        except msgspec.DecodeError:
            raise UserError(
                f"{path}:{number}: not a record with sentence_good and sentence_bad; write one JSON object per line"
            ) from None
        yield Pair(record.sentence_good, record.sentence_bad, record.UID or path.stem, record.linguistics_term)


def _linzen(text: Path, gold: Path) -> Iterator[Pair]:
    sentences, answers = _lines(text), _lines(gold)
    if len(sentences) != len(answers):
        raise UserError(
            f"{gold}: {len(answers):,} lines, but {text} has {len(sentences):,}; give files that belong together"
        )
    for number, (sentence, answer) in enumerate(zip(sentences, answers, strict=True), start=1):
        cells, words = answer.split("\t"), sentence.split()
        if len(cells) != 4 or not (cells[0].isdigit() and cells[3].isdigit()):
            raise UserError(
                f"{gold}:{number}: found {answer!r}; write: index TAB right form TAB wrong form TAB attractors"
            )
        index, right, wrong, attractors = int(cells[0]), cells[1], cells[2], int(cells[3])
        if index >= len(words) or words[index] != right:
            found = repr(words[index]) if index < len(words) else f"only {len(words)} words"
            raise UserError(f"{gold}:{number}: word {index} of the sentence should be {right!r}, found {found}")
        before = " ".join(words[:index])
        kind = f"{attractors} attractor{'' if attractors == 1 else 's'}"
        yield Pair(
            f"{before} {right}", f"{before} {wrong}", kind, "subject-verb agreement", whole=False, tokenised=True
        )


def _table(path: Path) -> Iterator[Pair]:
    for number, line in _rows(path):
        cells = line.split("\t")
        if len(cells) not in (2, 3) or not all(cell.strip() for cell in cells):
            raise UserError(f"{path}:{number}: found {line!r}; write good TAB bad, or good TAB bad TAB phenomenon")
        yield Pair(cells[0], cells[1], cells[2].strip() if len(cells) == 3 else path.stem)
