"""Lists of the n best hypotheses of a recogniser, and the references they are held against."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from elman.errors import UserError


class Hypothesis(msgspec.Struct, frozen=True):
    """One hypothesis of an utterance.

    Attributes:
        utterance: the name of what was said.
        scores: given with it, the higher the better.
        text: its words.

    """

    utterance: str
    scores: tuple[float, ...]
    text: str


def read_tsv(lines: Sequence[str], name: str) -> list[Hypothesis]:
    """Rows `id TAB score ... TAB text`; every row has as many scores, which may be none.

    Raises:
        UserError: a row that is not so.

    """
    found: list[Hypothesis] = []
    for number, line in _rows(lines):
        utterance, *scores, text = line.split("\t") if "\t" in line else [line, ""]
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
    return found


def read_kaldi(lines: Sequence[str], costs: Sequence[tuple[str, Sequence[str]]], name: str) -> list[Hypothesis]:
    """The text that Kaldi's `nbest-to-linear` writes: `utterance-N words` a line, and files `utterance-N cost`.

    Args:
        lines: of the text.
        costs: (file, its lines) for each kind of cost; a cost is a negative score.
        name: of the text, for messages.

    Raises:
        UserError: a key without its number, or a cost that is missing or not a number.

    """
    tables = [(file, _costs(file, rows)) for file, rows in costs]
    found = []
    for number, line in _rows(lines):
        key, *text = line.split(maxsplit=1)
        match = re.fullmatch(r"(.+)-\d+", key)
        if match is None:
            raise UserError(f"{name}:{number}: expected a key such as utterance-1 and words, found {line!r}")
        for file, table in tables:
            if key not in table:
                raise UserError(f"{file}: no cost of {key}, which {name}:{number} has")
        found.append(Hypothesis(match[1], tuple(-table[key] for _, table in tables), "".join(text).strip()))
    return found


def read_references(lines: Sequence[str], name: str) -> dict[str, str]:
    """The text of every utterance, from lines `id TAB text` or `id text`.

    Raises:
        UserError: an id that is there twice.

    """
    found: dict[str, str] = {}
    for number, line in _rows(lines):
        utterance, *text = re.split(r"[\t ]", line, maxsplit=1)
        if utterance in found:
            raise UserError(f"{name}:{number}: {utterance} is there twice; every utterance has one reference")
        found[utterance] = text[0].strip() if text else ""
    return found


def by_utterance(hypotheses: Sequence[Hypothesis]) -> dict[str, list[int]]:
    """The numbers of each utterance's hypotheses, in the order of first appearance."""
    groups: dict[str, list[int]] = {}
    for index, hypothesis in enumerate(hypotheses):
        groups.setdefault(hypothesis.utterance, []).append(index)
    return groups


def _costs(file: str, lines: Sequence[str]) -> dict[str, float]:
    found = {}
    for number, line in _rows(lines):
        try:
            key, cost = line.split()
            found[key] = _finite(cost)
        except ValueError:
            raise UserError(f"{Path(file)}:{number}: expected a key and a number, found {line!r}") from None
    return found


def _finite(text: str) -> float:
    value = float(text)
    if value != value or abs(value) == float("inf"):
        raise ValueError(text)
    return value


def _rows(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    stripped = ((number, line.rstrip("\r\n")) for number, line in enumerate(lines, start=1))
    return ((number, line) for number, line in stripped if line.strip())
