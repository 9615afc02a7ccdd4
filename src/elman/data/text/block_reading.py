"""The blocks of a text, counted or numbered by all cores.

Blocks are cut so that each can be read apart (`elman.data.text.blocks`) and are returned in their order, so that the
result is the same for any number of processes.
"""

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from elman.config.text import TextOptions
from elman.data.text.blocks import Block, blocks, read
from elman.data.text.passages import unseparated
from elman.data.text.sources import Section
from elman.data.text.subwords import Subwords
from elman.data.text.utf8 import LONGEST, as_read
from elman.data.text.vocabulary import EOS
from elman.errors import UserError
from elman.jobs import processes

Progress = Callable[[str, int, int], None]
"""Receives what is being done, the bytes done and all bytes."""

JOBS = "ELMAN_JOBS"
"""The environment variable that sets the number of processes."""

LEAST = 1 << 25
"""Bytes of a text from which on other processes are started for it."""

SUMS = ("characters", "num_bytes", "num_words", "unseparated")
"""Sums over passages, by name."""

_PLAIN = ("words", "line", "none", "keep")

FoundT = TypeVar("FoundT")


def num_jobs() -> int:
    """The number of processes that read a large text: that of ELMAN_JOBS, or one.

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


class Numbered(NamedTuple):
    """The tokens of a block, numbered apart from any vocabulary, which one process alone needs to hold.

    Attributes:
        words: its different tokens in order of first appearance.
        numbers: the place of each token in `words`, [n], int32.
        counts: sums over its passages, by name.
    """

    words: list[str]
    numbers: npt.NDArray[np.int32]
    counts: dict[str, int]


class BlockReader:
    """Counts and numbers the tokens in the blocks of a section."""

    def __init__(self, section: Section, options: TextOptions, subwords: Subwords | None = None) -> None:
        self.section, self.options, self.subwords = section, options, subwords
        self._at_once = (options.tokenisation, options.eos, options.normalisation, options.ruby) == _PLAIN

    def count(self, block: Block) -> dict[str, int]:
        """How often each token occurs, in order of first appearance."""
        return dict(Counter(self.tokens(block)[0]))

    def number(self, block: Block) -> Numbered:
        """The tokens of a block as places among its own words."""
        tokens, counts = self.tokens(block)
        words = list(dict.fromkeys(tokens))
        places = {word: place for place, word in enumerate(words)}
        return Numbered(words, np.fromiter(map(places.__getitem__, tokens), np.int32, len(tokens)), counts)

    def tokens(self, block: Block) -> tuple[list[str], dict[str, int]]:
        """The tokens of a block and the sums of its passages, by name."""
        if self._at_once and not block.edges and max(map(len, block.data.split(b"\n"))) < LONGEST:
            return self._whole(block)
        tokens, sums, lines = list[str](), [0, 0, 0, 0], 0
        for passage in read(block, self.section, self.options, self.subwords):
            tokens += passage.words
            lines += 1
            for place, value in enumerate(passage[1:5]):
                sums[place] += value
        return tokens, dict(zip(SUMS, sums, strict=True), lines=lines)

    def _whole(self, block: Block) -> tuple[list[str], dict[str, int]]:
        """The same for words in lines, all lines of a block at once, which takes a third of the time."""
        text = as_read(block.data, self.section.files, block.start, self.options)
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        tokens = f" {EOS} ".join(lines).split()
        tokens.append(EOS)
        letters, num_words = "".join(tokens), len(tokens) - len(lines)
        between = num_words + sum(not line.strip() for line in lines) - len(EOS) * len(lines)
        size = len(letters) if text.isascii() else len(letters.encode())
        sums = {"characters": len(letters) + between, "num_bytes": size + between, "num_words": len(tokens)}
        if self.options.lowercase:
            tokens = [token.lower() for token in tokens]
        return tokens, {**sums, "unseparated": unseparated(text), "lines": len(lines)}


_reader: BlockReader | None = None


def _begin(section: Section, options: TextOptions, pieces: bytes | None) -> None:
    global _reader
    _reader = BlockReader(section, options, None if pieces is None else Subwords(pieces))


def _work(method: str, block: Block) -> Any:
    return getattr(_reader, method)(block)


def read_blocks(
    reader: BlockReader, method: str, what: str, progress: Progress | None, start: int | None
) -> Iterator[tuple[int, Any]]:
    """What a method of the reader finds in each block, in order, and the byte where the block stops."""
    section, options = reader.section, reader.options
    total, label = section.end - section.start, f"{what}: {section.files.short_name}"
    pieces = None if reader.subwords is None else reader.subwords.model
    given = (section, options, pieces)
    jobs = num_jobs() if section.end - (start or section.start) >= LEAST else 1
    cut = blocks(section, options, start)
    found = _by_all(cut, method, given, jobs) if jobs > 1 else _one_by_one(cut, getattr(reader, method))
    for stop, one in found:
        if progress is not None:
            progress(label, stop - section.start, total)
        yield stop, one


def _one_by_one(cut: Iterator[Block], ask: Callable[[Block], FoundT]) -> Iterator[tuple[int, FoundT]]:
    """What is found in each block, one after another."""
    return ((block.stop, ask(block)) for block in cut)


def _by_all(cut: Iterator[Block], method: str, given: tuple[Any, ...], jobs: int) -> Iterator[tuple[int, Any]]:
    """The same in several processes, each two blocks ahead at most."""
    with processes(jobs, _begin, *given, option=JOBS) as executor:
        waiting = deque[tuple[int, Any]]()
        for block in cut:
            waiting.append((block.stop, executor.submit(_work, method, block)))
            if len(waiting) >= 2 * jobs:
                stop, future = waiting.popleft()
                yield stop, future.result()
        for stop, future in waiting:
            yield stop, future.result()
