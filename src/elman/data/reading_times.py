"""Tables of reading times, self-paced or of eye movements: the words of the texts, who read them, and how long."""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from elman.data.numbers import decimal_marks, is_missing, number
from elman.data.tables import first_row, in_one_form, named, rows_of
from elman.data.text.patterns import sentence_end
from elman.errors import UserError, counted, notice

Floats: TypeAlias = npt.NDArray[np.float64]
Places: TypeAlias = npt.NDArray[np.intp]
Place: TypeAlias = tuple[str, str, str, float]  # item, condition, sentence and position of a word

HEADINGS = {
    "word": "word token ia_label ia",
    "item": "item text_id itemid item_id story docid passage article text",
    "condition": "condition cond",
    "sentence": "sentence sentence_number sentence_id sentid sentnum sent_nr sent_id",
    "position": "position zone ia_id ianum word_number word_pos text_pos sentpos wnum region",
    "subject": "subject participant participant_id workerid worker_id recording_session_label subject_id subj subj_nr"
    " subid uniform_id pp_nr",
    "time": "rt reading_time time ia_first_run_dwell_time fdurgp firstrun.dur rtfirstpass word_gaze_duration"
    " gaze_duration fdur duration",
}
"""By what it is: the headings of a column (`in_one_form`), of which the first that a table has counts.

They come from Natural Stories (Futrell et al. 2021), Provo (Luke & Christianson 2018), Dundee (Kennedy et al. 2003,
in the form of modelblocks), UCL (Frank et al. 2013), Brown (Smith & Levy 2013) and MECO (Siegelman et al. 2022). Of
several measures of eye movements gaze duration counts.
"""

PLACE = ("item", "condition", "sentence", "position")


class Word(NamedTuple):
    """A word of a text, as it is written.

    Attributes:
        item: its item; items are left out together in cross-validation.
        text: the number of its text: an item has one in each condition.
        begins: whether a sentence begins with it.
    """

    item: str
    text: int
    begins: bool
    written: str


class ReadingTimes(NamedTuple):
    """The words of all texts in order, and n times.

    Attributes:
        columns: the headings that were read, by what they are.
        word: the place of the word of each time among `words`, [n].
        subject: who read it, [n]; empty where the table does not say.
        time: in the unit of the table, NaN where it is missing, [n].
    """

    words: list[Word]
    columns: dict[str, str]
    word: Places
    subject: list[str]
    time: Floats


def read_times(text: str, name: str, columns: Mapping[str, str]) -> ReadingTimes:
    """Read a table with a header and a row per word and reader; `columns`: headings that are not recognised.

    The decimal mark of positions and of times is decided by all their cells (`elman.data.numbers`).

    Without a column of positions the rows of each reader are in the order of the text. Raises UserError where a column
    is missing, a number is none, or one place has two words.
    """
    found, rows = _rows(text, name, columns)
    position, time = ([row[kind] for _, row in rows] for kind in ("position", "time"))
    by_position, by_time = _marks({found.get("position", "position"): position, found["time"]: time}, name, text)
    words, lines, read = dict[Place, str](), dict[Place, int](), list[Place]()
    for line, row in rows:
        item, condition, sentence = (row.get(kind, "") for kind in PLACE[:3])
        place = item, condition, sentence, _number(row["position"], f"{name}:{line}: the position", by_position)
        word = " ".join(row["word"].split())
        if not word:
            raise UserError(f"{name}:{line}: no word; give every row the word that was read")
        if words.setdefault(place, word) != word:
            raise UserError(
                f"{name}:{line}: {word!r} stands where line {lines[place]:,} has {words[place]!r} (item {item!r},"
                f" position {place[3]:g}); name a column of texts: --columns item=HEADING, condition= or sentence="
            )
        lines.setdefault(place, line)
        read.append(place)
    order = _ordered(list(words))
    index = {place: number for number, place in enumerate(order)}
    times = [
        math.nan if is_missing(cell) else _number(cell, f"{name}:{line}: the time", by_time)
        for (line, _), cell in zip(rows, time, strict=True)
    ]
    return ReadingTimes(
        words=_words(order, words, by_sentence="sentence" in found),
        columns=found,
        word=np.array([index[place] for place in read], np.intp),
        subject=[row["subject"] for _, row in rows] if "subject" in found else [],
        time=np.array(times),
    )


def _rows(text: str, name: str, given: Mapping[str, str]) -> tuple[dict[str, str], list[tuple[int, dict[str, str]]]]:
    """The headings of a table by what they are, and the lines and cells of its rows.

    Where it has no positions, the words of each reader are counted.
    """
    (_, header), *cells = rows_of(text, name, delimiter_of=_delimiter)
    header = ["row" if not column.strip() and not number else column for number, column in enumerate(header)]
    table = named(name, header, cells)
    if strange := [kind for kind in given if kind not in HEADINGS]:
        raise UserError(f"--columns {strange[0]}=: no column is called so; there are {', '.join(HEADINGS)}")
    if lacking := [column for column in given.values() if column not in table.columns]:
        raise UserError(f"{name}:1: no column {lacking[0]!r}; it has {', '.join(table.columns)}")
    forms = {in_one_form(heading): heading for heading in reversed(table.columns)}
    usual = {kind: [forms[one] for one in headings.split() if one in forms] for kind, headings in HEADINGS.items()}
    found = {kind: given.get(kind) or own[0] for kind, own in usual.items() if kind in given or own}
    for kind in ("word", "time"):
        if kind not in found:
            raise UserError(
                f"{name}:1: no column of the {kind} is recognised among {', '.join(table.columns)}; name it: --columns"
                f" {kind}=HEADING"
            )
    if "item" not in found and "sentence" in found:
        found["item"] = found.pop("sentence")
    places = {kind: table.columns.index(heading) for kind, heading in found.items()}
    rows = [(line, {kind: cells[at] for kind, at in places.items()}) for line, cells in table.rows]
    if "position" not in found:
        counts = defaultdict[tuple[str | None, ...], Iterator[int]](lambda: itertools.count(1))
        for _, row in rows:
            row["position"] = str(next(counts[tuple(map(row.get, ("subject", *PLACE[:3])))]))
    return found, rows


def _delimiter(row: str) -> str | None:
    return next((mark for mark in "\t,;" if mark in row), None)


def _ordered(places: list[Place]) -> list[Place]:
    """The places in the order of their texts: numbers by their size, other names in the order of the file."""
    items, conditions, sentences = (_ranks([place[part] for place in places]) for part in (0, 1, 2))
    return sorted(places, key=lambda at: (items[at[0]], conditions[at[1]], sentences[at[2]], at[3]))


def _words(order: Sequence[Place], written: Mapping[Place, str], *, by_sentence: bool) -> list[Word]:
    words, gaps, before = list[Word](), list[str](), None
    for place in order:
        same = before is not None and place[:2] == before[:2]
        if before is None or not same:
            begins = True
        elif by_sentence:
            begins = place[2] != before[2] and not is_missing(before[2])
        else:
            begins = sentence_end(f"{words[-1].written} ") is not None
        if before is not None and place[:3] == before[:3] and place[3] - before[3] > 1:
            gaps.append(f"item {place[0]}, position {before[3] + 1:g}")
        text = words[-1].text + (not same) if words else 0
        words.append(Word(place[0], text, begins, written[place]))
        before = place
    if gaps:
        notice(
            f"{counted(len(gaps), 'place')} of the texts has no row, such as {gaps[0]}: the words around it are read as"
            " neighbours; texts must be whole"
        )
    return words


def _ranks(names: Sequence[Any]) -> dict[str, float]:
    """Numbers by their size, others in the order of the file."""
    try:
        return {name: -math.inf if is_missing(name) else float(name) for name in names}
    except ValueError:
        return {name: float(number) for number, name in enumerate(dict.fromkeys(names))}


def _marks(columns: Mapping[str, Sequence[str]], name: str, text: str) -> list[str]:
    """The decimal marks of columns of numbers, by all their cells; a notice names those with commas."""
    marks = decimal_marks([*columns.values()], [*columns], name, _delimiter(first_row(text)) or "\t")
    for (heading, cells), mark in zip(columns.items(), marks, strict=True):
        if mark == "," and any("," in cell for cell in cells):
            notice(f"{name}: commas are decimal marks in column {heading}")
    return marks


def _number(cell: str, what: str, mark: str) -> float:
    value = number(cell, mark)
    if value is None or not math.isfinite(value):
        raise UserError(f"{what} is {cell!r}, which is no number; write numbers as 412 or 412.5")
    return value


def read_frequencies(text: str, name: str) -> dict[str, float]:
    """Words with their counts: the first two columns of a table, with or without a header."""
    rows = rows_of(text, name, delimiter_of=_delimiter)
    if short := next((line for line, cells in rows if len(cells) < 2), None):
        raise UserError(f"{name}:{short}: one cell; write a word and its count in every row")
    rows = rows[number(rows[0][1][1]) is None :]
    (mark,) = _marks({"count": [cells[1].strip() for _, cells in rows]}, name, text)
    return {cells[0].strip(): _number(cells[1].strip(), f"{name}:{line}: the count", mark) for line, cells in rows}
