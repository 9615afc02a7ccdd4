"""One of n parts of a text, so that what n processes find, one after another, is what one finds in the whole.

A part begins at a line and takes whole batches of sentences, counted from the beginning of the text: sentences that are
computed side by side are so in every division, and the numbers of sentences continue from part to part.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from elman.config.text import TextOptions
from elman.data.text.files import Files
from elman.data.text.passages import is_blank
from elman.data.text.sources import next_unit
from elman.data.text.utf8 import read_lines

Count = Callable[[Iterable[str]], int]  # how many sentences lines have


class Shard(NamedTuple):
    """A part of a text.

    Attributes:
        start: the byte from which on its lines are read.
        line: the number of the first of them, from 1.
        skip: sentences from there on that are not its own.
        first: the number of its first sentence, from 1.
        sentences: how many it has; None: all that follow.
    """

    start: int = 0
    line: int = 1
    skip: int = 0
    first: int = 1
    sentences: int | None = None


WHOLE_TEXT = Shard()


def shard_of(files: Files, options: TextOptions, number: int, parts: int, batch: int, count: Count) -> Shard:
    """Part `number`, from 1, of `parts`; the text up to its end is read once, to count its tokens."""
    begin, end = (_edge(files, options, files.size * one // parts) for one in (number - 1, number))
    before, lines = counted(files, options, 0, begin, count)
    inside, _ = counted(files, options, begin, end, count)
    first, stop = (-(-one // batch) * batch for one in (before, before + inside))
    return Shard(begin, lines + 1, first - before, first + 1, None if number == parts else stop - first)


def counted(files: Files, options: TextOptions, start: int, stop: int, count: Count) -> tuple[int, int]:
    """The numbers of sentences and lines between two bytes at which lines begin."""
    if start >= stop:
        return 0, 0
    if options.eos == "line" and options.tokenisation != "raw":  # every line is a sentence
        lines, left, last = 0, stop - start, b"\n"
        with files.reading(start) as file:
            while left and (block := file.read(min(left, 1 << 20))):
                lines, left, last = lines + block.count(b"\n"), left - len(block), block[-1:]
        return (lines + (last != b"\n"),) * 2
    lines = 0

    def texts() -> Iterator[str]:
        nonlocal lines
        text = ""
        for line in read_lines(files, start, stop, options):
            text += line.text
            if line.ended:
                yield text
                lines, text = lines + 1, ""

    return count(texts()), lines


def _edge(files: Files, options: TextOptions, target: int) -> int:
    """Where the first line (paragraph) from a byte on begins that is not blank."""
    if not target:
        return 0
    at = next_unit(files, target, "paragraph" if options.eos == "paragraph" else "line")
    with files.reading(at) as file:
        for line in file:
            if not is_blank(line, options):
                break
            at += len(line)
    return at
