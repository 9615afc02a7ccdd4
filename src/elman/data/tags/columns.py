"""Sentences with tags in columns: a word per line, a blank line after each sentence, as of the shared tasks of CoNLL.

Columns are divided by tabs, or by any blanks where the first line has no tab, and all lines have as many. CoNLL-U has
ten columns; its comments, multiword tokens (`3-4`) and empty nodes (`3.1`) are left out.
"""

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from elman.config.tags import TagOptions
from elman.data.lines import lines_of
from elman.data.text.utf8 import read_text
from elman.errors import UserError, counted, notice

CONLLU_COLUMNS = 10
FORM, UPOS = 1, 3
"""The columns of CoNLL-U that hold words and their universal parts of speech."""

DOCUMENT = "-DOCSTART-"
"""The word of a line that begins a document, which is no sentence."""

_BLANKS = re.compile("[ \t]+")
_RANGE_OR_EMPTY = re.compile(r"[0-9]+[-.][0-9]+")


class TaggedSentence(NamedTuple):
    """The words of a sentence and their tags, as they stand in the files."""

    words: list[str]
    tags: list[str]

    @property
    def source(self) -> str:
        """The words at single spaces, by which it is held out."""
        return " ".join(self.words)


class _Layout(NamedTuple):
    """How many columns there are, and which of them hold words and tags; `tabs`: they are divided by tabs alone."""

    columns: int
    word: int
    tag: int
    tabs: bool

    def cells(self, line: str) -> list[str]:
        return _cells(line, tabs=self.tabs)


def read_columns(path: Path, options: TagOptions) -> list[TaggedSentence]:
    """The sentences of a file; raises UserError, with the file and the line, where a line is not as the others are.

    Where lines that begin with `#` have another number of columns they are taken for comments, which a notice reports.
    """
    return read_lines(lines_of(read_text(path)), str(path), options)


def read_lines(lines: Sequence[str], name: str, options: TagOptions) -> list[TaggedSentence]:
    """As `read_columns`, from lines of a text of this name."""
    layout = _layout(lines, name, options)
    sentences, words, tags, comments = list[TaggedSentence](), list[str](), list[str](), 0
    for number, line in enumerate([*lines, ""], start=1):
        line = line.rstrip("\r")
        if not line.strip():
            if words:
                sentences.append(TaggedSentence(words, tags))
            words, tags = [], []
            continue
        if options.form == "conllu" and line.startswith("#"):
            continue
        cells = layout.cells(line)
        if cells[0] == DOCUMENT:
            continue
        if len(cells) != layout.columns:
            if line.startswith("#") and not words:
                comments += 1
                continue
            raise UserError(_other_number(f"{name}:{number}", cells, layout, options))
        if options.form == "conllu" and _RANGE_OR_EMPTY.fullmatch(cells[0]):
            continue
        word, tag = " ".join(cells[layout.word].split()), cells[layout.tag].strip()
        if not word or not tag:
            raise UserError(f"{name}:{number}: the {'tag' if word else 'word'} is empty; every word has a tag")
        words.append(word)
        tags.append(tag)
    if comments:
        notice(
            f"{name}: {counted(comments, 'line')} before sentences begin with # and have not"
            f" {layout.columns} columns: read as comments"
        )
    if not sentences:
        raise UserError(_no_sentence(name))
    return sentences


def _no_sentence(name: str) -> str:
    return f"{name}: there is no sentence; give a word and its tag per line, a blank line between sentences"


def _layout(lines: Sequence[str], name: str, options: TagOptions) -> _Layout:
    """The layout by the first line that is no comment; raises UserError where a column is not there."""
    rows = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    number, first = next((row for row in rows if not row[1].startswith(("#", DOCUMENT))), rows[0] if rows else (1, ""))
    if not first:
        raise UserError(_no_sentence(name))
    tabs = "\t" in first or options.form == "conllu"
    columns = CONLLU_COLUMNS if options.form == "conllu" else len(_cells(first, tabs=tabs))
    usual = (FORM, UPOS) if options.form == "conllu" else (0, columns - 1)
    word, tag = (
        own if given is None else given
        for given, own in zip((options.word_column, options.tag_column), usual, strict=True)
    )
    if columns < 2:
        raise UserError(
            f"{name}:{number}: one column, {first.strip()!r}; every line is a word and its tag, with a tab or blanks"
            ' between them (of a treebank in brackets set data.form = "trees")'
        )
    if max(word, tag) >= columns:
        key = "word_column" if word >= columns else "tag_column"
        raise UserError(
            f"{name}:{number}: {columns} columns, and data.{key} is {max(word, tag)}; the first column is 0, the last"
            f" {columns - 1}"
        )
    if word == tag:
        raise UserError(f"{name}: words and tags are both in column {word}; set data.word_column or data.tag_column")
    return _Layout(columns, word, tag, tabs)


def _cells(line: str, *, tabs: bool) -> list[str]:
    line = line.rstrip("\r")
    return line.split("\t") if tabs else _BLANKS.split(line.strip(" \t"))


def _other_number(where: str, cells: list[str], layout: _Layout, options: TagOptions) -> str:
    found = counted(len(cells), "column")
    if options.form == "conllu":
        return f"{where}: {found}; a line of CoNLL-U has {CONLLU_COLUMNS}, with tabs between them"
    return (
        f"{where}: {found}, and the first line has {layout.columns}; every line is a word with its tag, a blank line"
        " ends a sentence"
    )


def recognised(lines: Sequence[str]) -> str | None:
    """The form of data that lines look like, with those that are blank: `columns`, `conllu` or None.

    Besides being in columns, tags are no numbers and by far fewer than words, and blank lines divide the lines into
    blocks of two on average at least.
    """
    rows = _rows(lines)
    if rows and all(_is_conllu(row) for row in rows):
        return "conllu"
    table = _in_columns(rows)
    if not table:
        return None
    tags, blocks = [cells[-1] for cells in table], _blocks(lines)
    divided = blocks >= 2 and len(rows) >= 2 * blocks
    closed = len(set(tags)) <= max(2, len(tags) // 4) and not any(
        re.search(r"\s|^[-+.]*\d[-+.\d]*$|^$", tag) for tag in tags
    )
    return "columns" if divided and closed else None


def in_columns(lines: Sequence[str]) -> bool:
    """Whether there are lines, blank ones and comments left out, and each has two columns or more, all as many.

    Of twenty lines or more one in twenty may have another number, so that a damaged file is read as what it is.
    """
    return bool(_in_columns(_rows(lines)))


def _in_columns(rows: Sequence[str]) -> list[list[str]]:
    """The cells of the rows that have the usual number of columns; empty where rows are not in columns."""
    table = _table(rows)
    ((columns, usual),) = Counter(map(len, table)).most_common(1) or [(0, 0)]
    ragged = len(table) - usual
    if len(table) < 2 or columns < 2 or ragged > (len(table) // 20):
        return []
    return [cells for cells in table if len(cells) == columns]


def _rows(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.strip() and not line.startswith(("#", DOCUMENT))]


def _table(rows: Sequence[str]) -> list[list[str]]:
    tabs = bool(rows) and "\t" in rows[0]
    return [_cells(row, tabs=tabs) for row in rows]


def _is_conllu(row: str) -> bool:
    cells = row.split("\t")
    return len(cells) == CONLLU_COLUMNS and re.fullmatch(r"[0-9]+([-.][0-9]+)?", cells[0]) is not None


def _blocks(lines: Sequence[str]) -> int:
    """How many blocks the lines but comments are divided into by blank ones."""
    there = [bool(line.strip()) for line in lines if not line.startswith(("#", DOCUMENT))]
    return sum(here and not before for before, here in itertools.pairwise([False, *there]))
