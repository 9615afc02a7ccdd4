"""Lists of the n best hypotheses of a recogniser, in three formats, and the references that they are compared with."""

import gzip
import itertools
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from elman.data import numbers
from elman.data.lines import fields, lines_of
from elman.data.text.utf8 import decode, read_bytes
from elman.errors import UserError

LOG_10 = math.log(10)
BYTELOG = 1024 * math.log(1.0001)  # nats per unit of NBestList1.0
_KALDI = re.compile(r"(.+)-\d+")

NO_WORDS = ("<s>", "</s>", "-pau-")  # marks of a sentence's ends and of silence


class Hypothesis(msgspec.Struct, frozen=True):
    """One hypothesis of an utterance, with the recogniser's scores, of which higher ones are better."""

    utterance: str
    scores: tuple[float, ...]
    text: str


def _rows(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    stripped = ((number, line.rstrip("\r\n")) for number, line in enumerate(lines, start=1))
    return ((number, line) for number, line in stripped if line.strip())


def _finite(text: str) -> float:
    value = numbers.number(text, ".", grouped=False)
    if value is None or not math.isfinite(value):
        raise ValueError(text)
    return value


def read_tsv(lines: Sequence[str], name: str) -> list[Hypothesis]:
    """Rows `id TAB score ... TAB text`; every row has as many scores, which may be none.

    Raises UserError where a row has another form, with a hint at Kaldi's form where all rows have it, or no row has a
    text.
    """
    rows = list(_rows(lines))
    for number, line in rows:
        if "\t" not in line:
            kaldi = all("\t" not in row and _KALDI.fullmatch(fields(row)[0]) for _, row in rows)
            hint = "; these are keys of Kaldi's: add --kaldi" if kaldi else ""
            begins = line if len(line) <= 60 else f"{line[:60]}..."
            raise UserError(
                f"{name}:{number}: expected an id, scores and a text with tabs between, found no tab in"
                f" {begins!r}{hint}"
            )
    found: list[Hypothesis] = []
    for number, line in rows:
        utterance, *scores, text = line.split("\t")
        try:
            found.append(Hypothesis(utterance, tuple(map(_finite, scores)), text))
        except ValueError:
            raise UserError(
                f"{name}:{number}: expected an id, numbers and a text with tabs between, found {line!r}"
            ) from None
        if len(scores) != len(found[0].scores):
            raise UserError(
                f"{name}:{number}: {len(scores)} scores, but the first row has {len(found[0].scores)};"
                " every row must have as many"
            )
    if not any(one.text.strip() for one in found):
        raise UserError(f"{name}: every text is empty; write rows of id, scores and text with tabs between")
    return found


def scattered(hypotheses: Sequence[Hypothesis]) -> str | None:
    """The first utterance whose hypotheses do not stand together, if any: an id that may have been given twice."""
    seen = set[str]()
    for utterance, _ in itertools.groupby(hypotheses, lambda one: one.utterance):
        if utterance in seen:
            return utterance
        seen.add(utterance)
    return None


def read_kaldi(lines: Sequence[str], costs: Sequence[tuple[str, Sequence[str]]], name: str) -> list[Hypothesis]:
    """The text that Kaldi's `nbest-to-linear` writes: lines `utterance-N words`, and files of lines `utterance-N cost`.

    `costs` holds (file, its lines) for each kind of cost; a cost is a negative score. `name` names the text's file in
    messages.

    Raises UserError where a key has no number or appears twice, or a cost is missing or not a number.
    """
    tables = []
    for file, rows in costs:
        table: dict[str, float] = {}
        tables.append((file, table))
        for number, line in _rows(rows):
            try:
                key, cost = fields(line)
                value = _finite(cost)
            except ValueError:
                raise UserError(f"{Path(file)}:{number}: expected a key and a number, found {line!r}") from None
            if key in table:
                raise UserError(f"{Path(file)}:{number}: {key} appears twice; every hypothesis has one cost")
            table[key] = value
    found, keys = [], set[str]()
    for number, line in _rows(lines):
        key, *words = re.split(r"[ \t]+", line.strip(" \t"), maxsplit=1)
        match = _KALDI.fullmatch(key)
        if match is None:
            raise UserError(f"{name}:{number}: expected a key such as utterance-1 and words, found {line!r}")
        if key in keys:
            raise UserError(f"{name}:{number}: {key} appears twice; every hypothesis has a key of its own")
        keys.add(key)
        for file, table in tables:
            if key not in table:
                raise UserError(f"{file}: no cost of {key}, which {name}:{number} has")
        found.append(Hypothesis(match[1], tuple(-table[key] for _, table in tables), "".join(words).strip()))
    return found


def read_references(lines: Sequence[str], name: str) -> dict[str, str]:
    """The text of every utterance, from lines `id TAB text` or `id text`; where all have tabs, an id may have spaces.

    Raises UserError where an id appears twice, or no line has a word of text.
    """
    found: dict[str, str] = {}
    separator = r"\t" if all("\t" in line for _, line in _rows(lines)) else r"[\t ]"
    for number, line in _rows(lines):
        utterance, *text = re.split(separator, line, maxsplit=1)
        if utterance in found:
            raise UserError(f"{name}:{number}: {utterance} appears twice; every utterance has one reference")
        found[utterance] = text[0].strip() if text else ""
    if not any(found.values()):
        raise UserError(f"{name}: no reference has a word; write an id and its text in every line")
    return found


def by_utterance(hypotheses: Sequence[Hypothesis]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for index, hypothesis in enumerate(hypotheses):
        groups.setdefault(hypothesis.utterance, []).append(index)
    return groups


def read_srilm(source: Path) -> list[Hypothesis]:
    """The hypotheses of SRILM (nbest-format(5)): a folder with a file per utterance, or a list of such files.

    Lines are `ascore lscore nwords w1 w2 ...` with logarithms to the base 10, which give two scores, or after the
    header NBestList1.0 `(score) w1 w2 ...` in bytelogs, which give one; scores are converted to natural logarithms. An
    utterance has the name of its file without `.gz`, `.nbest`, `.score` or `.txt`.

    Raises UserError where a file cannot be read or has another form, or two are of one utterance.
    """
    if source.is_dir():
        listed = sorted(path for path in source.glob("[!.]*") if path.is_file())
    else:
        listed = [Path(name.strip()) for name in _lines(source) if name.strip()]
    files: dict[str, Path] = {}
    for path in listed:
        name = re.sub(r"(\.(gz|nbest|score|txt))+$", "", path.name)
        if name in files:
            raise UserError(f"{path}: the utterance {name} is also in {files[name]}; give each utterance one file")
        files[name] = path
    found = [hypothesis for name, path in files.items() for hypothesis in _hypotheses(name, path)]
    if not found:
        raise UserError(f"{source}: no hypothesis; give a folder of n-best files or a list of them")
    for one in found:
        if len(one.scores) != len(found[0].scores):
            raise UserError(f"{source}: {one.utterance} has another form of scores than {found[0].utterance}; use one")
    return found


def _lines(path: Path) -> list[str]:
    data = read_bytes(path, "give n-best files of SRILM")
    try:
        data = gzip.decompress(data) if path.suffix == ".gz" else data
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise UserError(f"{path}: a damaged gzip file; write it again") from None
    return lines_of(decode(data, str(path)))


def _hypotheses(name: str, path: Path) -> Iterator[Hypothesis]:
    lines = _lines(path)
    header = lines[0].strip() if lines and lines[0].startswith("NBestList") else ""
    if header not in ("", "NBestList1.0"):
        raise UserError(f"{path}: {header}; give NBestList1.0 (nbest2-to-nbest1 makes it) or lines of plain scores")
    for number, line in enumerate(lines, start=1):
        cells = line.split()
        if not cells or (header and number == 1):
            continue
        try:
            if header:
                score = re.fullmatch(r"\((.+)\)", cells[0])
                scores: tuple[float, ...] = (_finite(score[1] if score else "") * BYTELOG,)
                words = cells[1:]
            else:
                acoustic, language, _ = map(_finite, cells[:3])
                scores, words = (acoustic * LOG_10, language * LOG_10), cells[3:]
        except ValueError:
            form = "(score) words" if header else "ascore lscore nwords words"
            raise UserError(f"{path}:{number}: expected {form}, found {line!r}") from None
        yield Hypothesis(name, scores, " ".join(word for word in words if word not in NO_WORDS))
