"""A text in blocks of a megabyte, which all cores count or number.

Blocks are cut so that each can be read apart and together they give the passages of the whole text; what is found in
them is returned in their order, so that the result is the same for any number of processes.
"""

import io
import os
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from elman.config.text import TextOptions
from elman.data.lines import BLANKS, fields
from elman.data.text.passages import is_blank, passages, unseparated
from elman.data.text.sources import Section
from elman.data.text.utf8 import LONGEST, Line, as_read, empty, parts
from elman.data.text.vocabulary import EOS
from elman.errors import UserError
from elman.jobs import processes

if TYPE_CHECKING:
    from elman.data.text.subwords import Subwords

Progress = Callable[[str, int, int], None]  # receives what is being done, the bytes done and all bytes
JOBS = "ELMAN_JOBS"  # the environment variable that sets the number of processes
SIZE = 1 << 20  # bytes of a block, at least
LEAST = 1 << 25  # bytes of a text from which on other processes are started for it
SUMS = ("characters", "num_bytes", "num_words", "unseparated")  # sums over passages, by name


class Block(NamedTuple):
    """Bytes of a text from `start` on, which end before a line (or a part of one) that is not blank.

    Attributes:
        data: the bytes.
        start: the offset of the first of them in the text.
        cuts: the sizes of the parts of lines in them and whether a line ends there; empty where every line is whole.
        ends: whether the text ends with them.
    """

    data: bytes
    start: int
    cuts: tuple[tuple[int, bool], ...]
    ends: bool

    @property
    def stop(self) -> int:
        return self.start + len(self.data)

    def lines(self, section: Section, options: TextOptions) -> Iterator[Line]:
        """The lines; raises UserError where the bytes are not UTF-8 and not read as `bytes`."""
        at = 0
        for size, ended in self.cuts or _cuts(self.data, None):
            yield Line(as_read(self.data[at : at + size], section.files, options), ended)
            at += size


def blocks(section: Section, options: TextOptions, size: int = SIZE) -> Iterator[Block]:
    """The blocks of a section: what a blank line means can depend on the line before it, so none begins with one.

    Raises UserError where a file cannot be read, or the text is empty.
    """
    at, length, held, whole = section.start, 0, list[_Piece](), True

    def block(*, ends: bool) -> Block:
        cuts = () if whole else tuple(cut for data, ended in held for cut in _cuts(data, ended))
        return Block(b"".join(data for data, _ in held), at, cuts, ends)

    with section.files.reading(at) as file:
        for piece, ended in _pieces(file, section.end - at, size):
            if length >= size and not is_blank(piece[: piece.find(b"\n") + 1] or piece, options):
                yield block(ends=False)
                at, length, whole = at + length, 0, held[-1][1] is not False
                held.clear()
            held.append((piece, ended))
            whole = whole and ended is not False
            length += len(piece)
    if not at + length:
        raise empty(section.files)
    yield block(ends=True)


_Piece = tuple[bytes, bool | None]
"""Whole lines together (None), or one line or a part of a long one, and whether it ended there."""


def _cuts(data: bytes, ended: bool | None) -> list[tuple[int, bool]]:
    if ended is not None:
        return [(len(data), ended)]
    return [(len(line), end) for line, end in parts(io.BytesIO(data))]


def _pieces(file: BinaryIO, left: int, most: int) -> Iterator[_Piece]:
    """The next bytes: whole lines together as far as they are at hand, which is faster than one by one."""
    while left > 0 and (ahead := cast("io.BufferedReader", file).peek()[: min(left, most)]):
        if edge := ahead.rfind(b"\n") + 1:
            yield file.read(edge), None
            left -= edge
            continue
        for data, ended in parts(file, left):
            yield data, ended
            left -= len(data)
            if ended:
                break


class BlockReader:
    """Counts and numbers the tokens in the blocks of a section."""

    def __init__(self, section: Section, options: TextOptions, subwords: "Subwords | None" = None) -> None:
        self.section, self.options, self.subwords = section, options, subwords
        plain = (options.tokenisation, options.eos, options.normalisation, options.ruby)
        self._at_once = plain == ("words", "line", "none", "keep")

    def count(self, block: Block) -> dict[str, int]:
        """How often each token occurs, in order of first appearance."""
        return dict(Counter(self.tokens(block)[0]))

    def number(self, block: Block) -> tuple[list[str], npt.NDArray[np.int32], dict[str, int]]:
        """The tokens of a block apart from any vocabulary, which one process alone needs to hold.

        Its different tokens in order of first appearance, the place of each token among them [n], and the sums of its
        passages, by name.
        """
        tokens, counts = self.tokens(block)
        words = list(dict.fromkeys(tokens))
        places = {word: place for place, word in enumerate(words)}
        return words, np.fromiter(map(places.__getitem__, tokens), np.int32, len(tokens)), counts

    def tokens(self, block: Block) -> tuple[list[str], dict[str, int]]:
        """The tokens of a block and the sums of its passages, by name."""
        if self._at_once and not block.cuts and max(map(len, block.data.split(b"\n"))) < LONGEST:
            return self._whole(block)
        tokens, sums, lines = list[str](), [0, 0, 0, 0], 0
        read = block.lines(self.section, self.options)
        for passage in passages(read, self.options, self.subwords, ends=block.ends):
            tokens += passage.words
            lines += 1
            for place, value in enumerate(passage[1:5]):
                sums[place] += value
        return tokens, dict(zip(SUMS, sums, strict=True), lines=lines)

    def _whole(self, block: Block) -> tuple[list[str], dict[str, int]]:
        """The same for words in lines, all lines of a block at once, which takes a third of the time."""
        text = as_read(block.data, self.section.files, self.options)
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        tokens = fields(f" {EOS} ".join(lines))
        tokens.append(EOS)
        letters, num_words = "".join(tokens), len(tokens) - len(lines)
        between = num_words + sum(not line.strip(BLANKS) for line in lines) - len(EOS) * len(lines)
        size = len(letters) if text.isascii() else len(letters.encode())
        sums = {"characters": len(letters) + between, "num_bytes": size + between, "num_words": len(tokens)}
        if self.options.lowercase:
            tokens = [token.lower() for token in tokens]
        return tokens, {**sums, "unseparated": unseparated(text), "lines": len(lines)}


def num_jobs() -> int:
    """The number of processes that read a large text, as ELMAN_JOBS sets it; one by default.

    The command line sets the variable to `auto`, all cores. A program that imports elman would be run again from its
    beginning by each process unless it is written for that (`if __name__ == "__main__"`), so there it is one.

    Raises UserError where ELMAN_JOBS is neither `auto` nor a whole number.
    """
    text = os.environ.get(JOBS, "1")
    if text == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise UserError(
            f"{JOBS} is {text!r}; set it to auto, or to the number of processes that read a text, such as 4"
        )
    return int(text)


def read_blocks(reader: BlockReader, method: str, what: str, progress: Progress | None) -> Iterator[Any]:
    """What the method of this name of the reader returns for each block, in order."""
    section = reader.section
    size, label = section.end - section.start, f"{what}: {section.files.short_name}"
    jobs = num_jobs() if size >= LEAST else 1
    cut, ask = blocks(section, reader.options), getattr(reader, method)
    found = _by_all(cut, method, reader, jobs) if jobs > 1 else ((one.stop, ask(one)) for one in cut)
    for stop, one in found:
        if progress is not None:
            progress(label, stop - section.start, size)
        yield one


_reader: BlockReader | None = None


def _begin(section: Section, options: TextOptions, pieces: bytes | None) -> None:
    global _reader
    subwords = None
    if pieces is not None:
        from elman.data.text.subwords import Subwords

        subwords = Subwords(pieces)
    _reader = BlockReader(section, options, subwords)


def _work(method: str, block: Block) -> Any:
    return getattr(_reader, method)(block)


def _by_all(cut: Iterator[Block], method: str, reader: BlockReader, jobs: int) -> Iterator[tuple[int, Any]]:
    """As `read_blocks` with `jobs` processes, each at most two blocks ahead: the end and result of each block."""
    pieces = None if reader.subwords is None else reader.subwords.model
    with processes(jobs, _begin, reader.section, reader.options, pieces, option=JOBS) as executor:
        waiting = deque[tuple[int, Any]]()
        for block in cut:
            waiting.append((block.stop, executor.submit(_work, method, block)))
            if len(waiting) >= 2 * jobs:
                stop, future = waiting.popleft()
                yield stop, future.result()
        for stop, future in waiting:
            yield stop, future.result()
