"""Sentences with tags in columns: a word per line, a blank line after each sentence, as of the shared tasks of CoNLL.

Columns are divided by tabs, or by any blanks where the first line has no tab, and all lines have as many. CoNLL-U has
ten columns; its comments, multiword tokens (`3-4`) and empty nodes (`3.1`) are left out. Other dependency columns are
known by their numbers (`dependencies`).
"""

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from elman.data.lines import fields, lines_of
from elman.data.tables import Row, in_one_form, in_runs, rows_of
from elman.data.text.utf8 import read_text
from elman.errors import UserError, counted, notice, one_line
from elman.kinds.tags.dependencies import DOCUMENT, RANGE_OR_EMPTY, cells_of, dependencies
from elman.kinds.tags.record import TagOptions

CONLLU_COLUMNS = 10
FORM, UPOS = 1, 3  # the columns of CoNLL-U that hold words and their universal parts of speech


class TaggedSentence(NamedTuple):
    """The words of a sentence and their tags, as they stand in the files."""

    words: list[str]
    tags: list[str]

    @property
    def source(self) -> str:
        """The words at single spaces, by which it is held out."""
        return " ".join(self.words)


class _Layout(NamedTuple):
    """How many columns there are, and which of them hold words and tags; `tabs`: they are divided by tabs alone.

    `first`: the number of the first word of each sentence, where the first column counts them and blank lines do not
    divide them. `header`: a line that is passed over.
    """

    columns: int
    word: int
    tag: int
    tabs: bool
    numbered: bool = False
    first: str | None = None
    header: str | None = None


def read_columns(path: Path, options: TagOptions) -> list[TaggedSentence]:
    """The sentences of a file; raises UserError, with the file and the line, where a line is not as the others are.

    Where lines that begin with `#` have another number of columns they are taken for comments, which a notice reports.
    """
    lines = lines_of(read_text(path))
    if options.form == "columns" and (found := table_of_tags(lines, str(path))):
        return _of_table(*found, str(path), options)
    return read_lines(lines, str(path), options)


class TagTable(NamedTuple):
    """The names of the columns, and which of them hold words, tags and, if any does, names of sentences."""

    names: list[str]
    word: int
    tag: int
    sentence: int | None


def table_of_tags(lines: Sequence[str], name: str = "", *, cut: bool = False) -> tuple[TagTable, list[Row]] | None:
    """A table with a header that names columns of words and tags, and its rows; None where there is none.

    Sentences are divided by blank lines, or named in a column, which may be empty but at the first word of each: its
    heading names it, or its cells are alike for several words in a row. Where nothing divides them, words have to be
    several sentences (`runs_on`), which the reader refuses. The last column of tags is read. `cut`: as in `rows_of`.
    """
    header = next((line for line in lines if line.strip()), "")
    names = [in_one_form(cell.strip('\ufeff "')) for cell in re.split("[\t,;]", header)]
    word = next((index for index, one in enumerate(names) if _WORD.fullmatch(one)), None)
    tag = max((index for index, one in enumerate(names) if _TAG.fullmatch(one)), default=None)
    sentence = next((index for index, one in enumerate(names) if _SENTENCE.fullmatch(one)), None)
    if word is None or tag is None or "head" in names:
        return None
    try:
        (_, columns), *rows = rows_of("\n".join(lines), name, cut=cut)
    except UserError:
        return None
    divided = any(after - before > 1 for (before, _), (after, _) in itertools.pairwise(rows))
    if not rows or len(columns) != len(names):
        return None
    if sentence is None and not divided:
        others = [index for index in range(len(names)) if index not in (word, tag)]
        sentence = next((index for index in others if in_runs([cells[index : index + 1] for _, cells in rows])), None)
        if sentence is None and not runs_on([cells[word] for _, cells in rows if len(cells) > word]):
            return None
    return TagTable([cell.strip() for cell in columns], word, tag, sentence), rows


def runs_on(words: Sequence[str]) -> bool:
    """Whether words are several sentences: twenty or more, of which three and one per cent are the same full stop."""
    stops = Counter(word for word in words if word in _STOPS)
    return len(words) >= 20 and max(stops.values(), default=0) >= max(3, len(words) // 100)


_STOPS = frozenset(".!?\u3002\uff01\uff1f\u061f\u0964")
_WORD = re.compile("words?|tokens?|form")
_TAG = re.compile("(?:(?:pos|ner|chunk|xpos|upos|word)_)?(?:tags?|labels?)|[xu]?pos|ner|chunk|part_of_speech")
_SENTENCE = re.compile("sent(?:ence)?(?:_?(?:ids?|no|nr|num|number|index|idx|#))?")


def _of_table(table: TagTable, rows: Sequence[Row], name: str, options: TagOptions) -> list[TaggedSentence]:
    names, word, tag, sentence = table
    word = word if options.word_column is None else options.word_column
    tag = tag if options.tag_column is None else options.tag_column
    if max(word, tag) >= len(names) or word == tag:
        raise UserError(f"{name}: {len(names)} columns; set data.word_column and data.tag_column to two of them")
    sentences, before, here = list[TaggedSentence](), 0, ""
    for number, cells in rows:
        if len(cells) != len(names):
            raise UserError(f"{name}:{number}: {len(cells)} cells, but the header has {len(names)}")
        one, label = " ".join(cells[word].split()), "_".join(cells[tag].split())
        if not one or not label:
            raise UserError(f"{name}:{number}: the {'tag' if one else 'word'} is empty; every word has a tag")
        which = here if sentence is None else cells[sentence].strip() or here
        if not sentences or which != here or (sentence is None and number > before + 1):
            sentences.append(TaggedSentence([], []))
        sentences[-1].words.append(one)
        sentences[-1].tags.append(label)
        before, here = number, which
    if sentence is None and len(sentences) == 1:
        raise _undivided(name, sentences[0])
    how = "blank lines divide sentences" if sentence is None else f"sentences are named in {names[sentence]}"
    notice(one_line(f"{name}: a table; words are in column {names[word]}, tags in {names[tag]}; {how}"))
    return sentences


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
        cells = cells_of(line, tabs=layout.tabs)
        if cells[0] == DOCUMENT or (line == layout.header and not sentences and not words):
            continue
        if words and cells[0] == layout.first:
            sentences.append(TaggedSentence(words, tags))
            words, tags = [], []
        if len(cells) != layout.columns:
            if line.startswith("#") and not words:
                comments += 1
                continue
            raise UserError(_other_number(f"{name}:{number}", cells, layout, options))
        if layout.numbered and RANGE_OR_EMPTY.fullmatch(cells[0]):
            continue
        word, tag = " ".join(fields(cells[layout.word])), cells[layout.tag].strip()
        if not word or not tag:
            raise UserError(f"{name}:{number}: the {'tag' if word else 'word'} is empty; every word has a tag")
        words.append(word)
        tags.append(tag)
    if comments:
        notice(
            f"{name}: {counted(comments, 'line')} before sentences begin with # and have not"
            f" {layout.columns} columns: read as comments"
        )
    if layout.numbered and (empty := sum(one.tags.count("_") for one in sentences)):
        notice(f"{name}: {counted(empty, 'word')} with the tag _, which stands for none: it is learnt as any other tag")
    if not sentences:
        raise UserError(_no_sentence(name))
    if len(sentences) == 1 and all(line.strip() for line in lines) and runs_on(sentences[0].words):
        raise _undivided(name, sentences[0])
    return sentences


def _undivided(name: str, one: TaggedSentence) -> UserError:
    return UserError(f"{name}: {len(one.words):,} words with tags and no blank line; put one after each sentence")


MARKS = "_/|"  # what stands between a word and its tag, where both are one token: the last of these in it


def joined_tag(token: str) -> tuple[str, str] | None:
    """The word and the tag of `word_TAG`; None where there are none."""
    at = max(map(token.rfind, MARKS))
    return (token[:at], token[at + 1 :]) if 0 < at < len(token) - 1 else None


def read_joined(lines: Sequence[str], name: str) -> list[TaggedSentence]:
    """Sentences of words with their tags behind a mark, one per line; brackets and rules of phrases are left out.

    Raises UserError, with the line, where a word has no tag.
    """
    sentences = []
    for number, line in enumerate(lines, start=1):
        tokens = [token for token in cells_of(line, tabs=False) if token.strip("[]=")]
        cut = [(token, joined_tag(token)) for token in tokens]
        if bare := next((token for token, pair in cut if pair is None), None):
            raise UserError(f"{name}:{number}: {bare!r} has no tag; every word has one, as in cat_NN or cat/NN")
        pairs = [pair for _, pair in cut if pair]
        if pairs:
            sentences.append(TaggedSentence([word for word, _ in pairs], [tag for _, tag in pairs]))
    if not sentences:
        raise UserError(f"{name}: there is no sentence; give words with their tags, as in the_DT cat_NN, one per line")
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
    columns = CONLLU_COLUMNS if options.form == "conllu" else len(cells_of(first, tabs=tabs))
    found = None if options.form == "conllu" else dependencies(lines)
    usual = (FORM, UPOS) if options.form == "conllu" else (0, columns - 1)
    if found is not None:
        usual = found.word, columns - 1 if found.tag is None else found.tag
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
    if found is None:
        return _Layout(columns, word, tag, tabs, numbered=options.form == "conllu")
    if options.word_column is None and options.tag_column is None:
        notice(f"{name}: dependency columns; words are read of column {word}, tags of column {tag} (the first is 0)")
    start = None if found.divided else found.first
    return _Layout(columns, word, tag, tabs, found.first is not None, start, found.header)


def _other_number(where: str, cells: list[str], layout: _Layout, options: TagOptions) -> str:
    found = counted(len(cells), "column")
    if options.form == "conllu":
        return f"{where}: {found}; a line of CoNLL-U has {CONLLU_COLUMNS}, with tabs between them"
    return (
        f"{where}: {found}, and the first line has {layout.columns}; every line is a word with its tag, a blank line"
        " ends a sentence"
    )
