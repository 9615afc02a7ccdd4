"""Dependency columns, as of CoNLL-X, CoNLL-2009 and MaltTab: the number of each word, the word, tags, heads, relations.

They are known by what they hold: a first column that counts the words of each sentence, or a column of heads, which are
numbers of words of the sentence, 0 for its root. A header is passed over, and so are multiword tokens (`3-4`).
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

DOCUMENT = "-DOCSTART-"  # the word of a line that begins a document, which is no sentence
RANGE_OR_EMPTY = re.compile(r"[0-9]+[-.][0-9]+")  # the numbers of multiword tokens and of empty nodes
_BLANKS = re.compile("[ \t]+")
_NUMBER = re.compile("[-+.,0-9]+")
_HEAD = re.compile("-1|0|[1-9][0-9]*")
_LOOKED = 5000  # lines that decide
_ENOUGH = 8  # sentences of which the last one is not needed, which may be cut
Block = list[list[str]]


class Layout(NamedTuple):
    """The columns of words and of their tags, None where no column has any.

    Attributes:
        first: where the first column counts the words, its number of the first word of each sentence.
        header: the line above all sentences, if there is one.
        divided: whether blank lines divide the sentences.
    """

    word: int
    tag: int | None
    first: str | None
    header: str | None
    divided: bool


def cells_of(line: str, *, tabs: bool) -> list[str]:
    """The cells of a line, divided by tabs or by any blanks."""
    line = line.rstrip("\r")
    return line.split("\t") if tabs else _BLANKS.split(line.strip(" \t"))


def dependencies(lines: Sequence[str]) -> Layout | None:
    """The layout of dependency columns; None where lines are none.

    Of the columns behind the words, heads and the relations right of them apart, tags are the first one with by far
    fewer values than there are words (at most a fifth), else the one with the fewest; relations where there is no
    other.
    """
    lines = lines[:_LOOKED]
    rows = [line for line in lines if line.strip() and not line.startswith(("#", DOCUMENT))]
    if len(rows) < 4:
        return None
    tabs = "\t" in rows[1]
    width, header = len(cells_of(rows[1], tabs=tabs)), None
    if width < 3:
        return None
    if not any(_HEAD.fullmatch(cell) for cell in cells_of(rows[0], tabs=tabs)):
        header = rows[0]
    blocks = list(_blocks(lines, header, tabs=tabs))
    table = [cells for block in blocks for cells in block]
    if sum(len(cells) != width for cells in table) > len(table) // 20:
        return None
    blocks = [block for block in blocks if all(len(cells) == width for cells in block)]
    first = _first_number(blocks)
    sentences = blocks if first is None else [one for block in blocks for one in _counted(block, first)]
    sentences = sentences[:-1] if len(sentences) > _ENOUGH else sentences
    word, divided = int(first is not None), len(blocks) > 1
    table = [cells for block in sentences for cells in block]
    heads = [at for at in range(word + 1, width) if len(sentences) > 1 and _are_heads(sentences, at)]
    if len(sentences) < 2 or not (heads or (first is not None and divided)):
        return None
    columns = [set(column) for column in zip(*table, strict=True)]
    if all(_NUMBER.fullmatch(cell) for cell in columns[word]):
        return None
    relations = [at for at in range(word + 1, width) if at - 1 in heads and at not in heads]
    few = [
        at
        for at in range(word + 1, width)
        if at not in heads
        and 1 < len(columns[at]) < len(columns[word])
        and not any(cell.isdecimal() for cell in columns[at])
    ]
    closed = [at for at in few if at not in relations] or few
    usual = (at for at in closed if len(columns[at]) <= max(2, len(columns[word]) // 5))
    tag = next(usual, min(closed, key=lambda at: len(columns[at]), default=None))
    return Layout(word, tag, first, header, divided)


def _blocks(lines: Sequence[str], header: str | None, *, tabs: bool) -> Iterator[Block]:
    """What blank lines divide, without comments, multiword tokens and the header."""
    block: Block = []
    for line in [*lines, ""]:
        if not line.strip():
            if block:
                yield block
            block = []
        elif not line.startswith(("#", DOCUMENT)) and line is not header:
            cells = cells_of(line, tabs=tabs)
            if not RANGE_OR_EMPTY.fullmatch(cells[0]):
                block.append(cells)


def _first_number(blocks: Sequence[Block]) -> str | None:
    """The number of the first word of each sentence, where the first column counts the words: `0` or `1`."""
    first = blocks[0][0][0] if blocks else ""
    if first not in ("0", "1") or all(len(block) == 1 for block in blocks):
        return None
    for block in blocks:
        expected = first
        for number, *_ in block:
            if number not in (first, expected):
                return None
            expected = str(int(number) + 1)
    return first


def _counted(block: Block, first: str) -> Iterator[Block]:
    """The sentences of a block, each of which begins with the first number."""
    starts = [at for at, cells in enumerate(block) if cells[0] == first] or [0]
    for start, stop in zip(starts, [*starts[1:], len(block)], strict=True):
        yield block[start:stop]


def _are_heads(sentences: Sequence[Block], at: int) -> bool:
    """Whether a column has numbers of words of its sentence alone, and one root or few in nearly every sentence."""
    roots, several = 0, 0
    for block in sentences:
        cells = [cells[at] for cells in block]
        if not all(_HEAD.fullmatch(cell) and int(cell) <= len(block) for cell in cells):
            return False
        found = sum(cell in ("0", "-1") for cell in cells)
        roots += 0 < found <= max(1, len(cells) // 2)
        several += len(set(cells)) > 1
    return roots >= 0.9 * len(sentences) and several > 0


_TYPED = re.compile(r"[\w:]+\(\S+-\d+'*, ?\S+-\d+'*\)")


def other_form(lines: Sequence[str]) -> str | None:
    """Dependencies that have no tags, in words; None where lines are none."""
    rows = [line for line in lines if line.strip()]
    if len(rows) > 1 and sum(_TYPED.fullmatch(row.strip()) is not None for row in rows) > 0.9 * len(rows):
        return "typed dependencies, such as det(lamp-2, the-1)"
    found = dependencies(lines)
    return "words with the heads of their dependencies, without tags" if found and found.tag is None else None
