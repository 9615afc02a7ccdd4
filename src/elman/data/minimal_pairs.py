"""Minimal pairs: a grammatical sentence, and an ungrammatical one that differs from it in one respect.

Three kinds of files: BLiMP's JSON lines (Warstadt et al. 2020), Linzen's sentences with a `.gold` file beside `.text`
(Linzen, Dupoux & Goldberg 2016), and tables (`elman.data.pair_tables`).
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from elman.data.catalog.prepare import info, is_known, locate_minimal_pairs
from elman.data.pair_tables import ADVICE, Pair, read_pair_table
from elman.data.text.utf8 import read_file_lines
from elman.errors import UserError, counted
from elman.formats import parse_json


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
    return [pair for name in names for pair in _read(name)]


def _read(name: str) -> Iterator[Pair]:
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
        if file.suffix == ".jsonl":
            yield from _blimp(file)
        elif file.suffix in (".gold", ".text"):
            yield from _linzen(file.with_suffix(".text"), file.with_suffix(".gold"))
        else:
            yield from read_pair_table(file)


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
