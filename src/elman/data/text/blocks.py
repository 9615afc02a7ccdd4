"""A text in blocks of a megabyte that can be read apart: together they give the passages of the whole text.

A block ends before a line that is not blank, since what a blank line means can depend on the line before it. Where a
line is longer than a block, the block is parts of that line, as `elman.data.text.utf8.parts` cuts them.
"""

import io
from collections.abc import Iterator
from typing import NamedTuple

from elman.config.text import TextOptions
from elman.data.text.passages import Passage, is_blank, passages
from elman.data.text.sources import Section
from elman.data.text.subwords import Subwords
from elman.data.text.utf8 import Line, as_read, open_after_mark, parts

SIZE = 1 << 20
"""Bytes of a block."""

_LONGEST_LOOK = 1 << 16


class Block(NamedTuple):
    """Bytes of a text.

    Attributes:
        data: the bytes.
        start: the offset of the first of them in the text.
        edges: where the parts of a long line end in them, if they are nothing else; else empty.
        ends: whether the text ends with them.
    """

    data: bytes
    start: int
    edges: tuple[int, ...]
    ends: bool

    @property
    def stop(self) -> int:
        """The offset of the byte after them."""
        return self.start + len(self.data)


def blocks(section: Section, options: TextOptions, start: int | None = None, size: int = SIZE) -> Iterator[Block]:
    """The blocks of a section, or of what remains of it from `start`, where a block began.

    Raises UserError where a file cannot be read, or the text is empty.
    """
    with open_after_mark(section.files, section.start if start is None else start, options) as (file, at):
        left, data = section.end - at, b""
        while left > 0 and (found := file.read(min(size, left))):
            left, data = left - len(found), data + found
            if left > 0 and (block := _cut(data, at, options)) is not None:
                yield block
                at, data = block.stop, data[len(block.data) :]
        if data:
            yield Block(data, at, (), True)


def read(block: Block, section: Section, options: TextOptions, subwords: Subwords | None = None) -> Iterator[Passage]:
    """The passages of a block; raises UserError where its bytes are not UTF-8 and not read as `bytes`."""
    return passages(_lines(block, section, options), options, subwords, ends=block.ends)


def _lines(block: Block, section: Section, options: TextOptions) -> Iterator[Line]:
    at = 0
    if block.edges:
        for edge in block.edges:
            yield Line(as_read(block.data[at:edge], section.files, block.start + at, options), False)
            at = edge
        return
    for data, ended in parts(io.BytesIO(block.data)):
        yield Line(as_read(data, section.files, block.start + at, options), ended)
        at += len(data)


def _cut(data: bytes, start: int, options: TextOptions) -> Block | None:
    """The longest block at the beginning of bytes that more bytes follow; None where it takes more to know one."""
    edge = data.rfind(b"\n") + 1
    if edge == 0:
        edges = list(_edges_of_parts(data))
        while edges and _may_be_blank(data, edges[-1], options):
            edges.pop()
        return Block(data[: edges[-1]], start, tuple(edges), False) if edges else None
    while edge > 0:
        if not _may_be_blank(data, edge, options):
            return Block(data[:edge], start, (), False)
        edge = data.rfind(b"\n", 0, edge - 1) + 1
    return None


def _may_be_blank(data: bytes, edge: int, options: TextOptions) -> bool:
    """Whether the line that begins at `edge` is blank, or too little of it is there to know."""
    stop = data.find(b"\n", edge, edge + _LONGEST_LOOK) + 1
    if not stop and len(data) - edge < _LONGEST_LOOK:
        return True
    return is_blank(data[edge : stop or edge + _LONGEST_LOOK], options)


def _edges_of_parts(data: bytes) -> Iterator[int]:
    """Where the parts of a line that continues end; the last of its bytes may belong to a part that is not complete."""
    at = 0
    for part, ended in parts(io.BytesIO(data)):
        if ended:
            return
        at += len(part)
        yield at
