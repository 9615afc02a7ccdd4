"""A text read by all cores: its words counted and its ids written, block by block, in constant memory.

Blocks are cut so that each can be read apart (`elman.data.text.blocks`) and are put together in their order, so that
the result is the same for any number of processes. What was interrupted is continued where it ended.
"""

import contextlib
import os
import zlib
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from elman.config.text import TextOptions
from elman.data.text.blocks import Block, blocks, read
from elman.data.text.lacking import require_known
from elman.data.text.passages import TokenCounts, first_token, only_blank_lines, passages, unseparated
from elman.data.text.sources import Section
from elman.data.text.subwords import Subwords
from elman.data.text.utf8 import LONGEST, as_read, read_lines
from elman.data.text.vocabulary import EOS, Vocabulary
from elman.data.text.word_counts import WordCounts
from elman.errors import UserError
from elman.files import explain, write_atomic
from elman.jobs import processes

Progress = Callable[[str, int, int], None]
"""Receives what is being done, the bytes done and all bytes."""

JOBS = "ELMAN_JOBS"
"""The environment variable that sets the number of processes."""

LEAST = 1 << 25
"""Bytes of a text from which on other processes are started for it."""

MARK = 1 << 27
"""Bytes of a text after which a file that is being written is marked as complete up to there."""

FoundT = TypeVar("FoundT")


class Counts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The counts of an encoded split, as the cache keeps them, and the digest of the source text.

    Attributes:
        unknown: how many of them the vocabulary lacks; an `<unk>` that is written in the text is known.
        characters, num_bytes, num_words, unseparated: sums over the passages (`elman.data.text.passages.Passage`); with
            many letters in clauses without spaces, `unseparated`, `num_words` is meaningless.
        lines: how many lines were read (one longer than 64 KiB counts as several).
        first: what the first token contributes to these counts.
    """

    tokens: int
    unknown: int
    characters: int
    num_bytes: int
    num_words: int
    unseparated: int
    lines: int
    first: TokenCounts
    sha256: str


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
        return tokens, dict(zip(_SUMS, sums, strict=True), lines=lines)

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


_SUMS = ("characters", "num_bytes", "num_words", "unseparated")
_PLAIN = ("words", "line", "none", "keep")


def count_words(
    section: Section,
    options: TextOptions,
    counts: WordCounts,
    progress: Progress | None = None,
    subwords: Subwords | None = None,
    start: int = 0,
) -> None:
    """Add the words of a section to counts, which may have had some of it; `start`: bytes counted before the section.

    Raises UserError where the text cannot be used.
    """
    already = None if counts.stop is None or counts.stop <= start else section.start + counts.stop - start
    if already is not None and already >= section.end:
        return
    found = already is not None
    reader = BlockReader(section, options, subwords)
    for stop, tokens in _read(reader, "count", "counting words", progress, already):
        found = found or _has_words(tokens)
        counts.add(tokens, start + stop - section.start)
    if not found:
        raise only_blank_lines(section.files, section.start, section.stop)


class _Begun(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How far a file of ids is complete: up to byte `stop` of its text, with these counts and this CRC-32."""

    stop: int
    crc: int = 0
    has_words: bool = False
    counts: dict[str, int] = {}


def encode(
    section: Section,
    sha256: str,
    vocabulary: Vocabulary,
    options: TextOptions,
    path: Path,
    progress: Progress | None,
    subwords: Subwords | None = None,
) -> Counts:
    """Write the ids of a section to `path` as little-endian int32, completely or not at all.

    What an interrupted call has written beside `path` is taken over, if it is as it was left.

    Raises UserError where the text is bad, the folder cannot be written, or a word is unknown and there is no `<unk>`.
    """
    begun, journal = path.with_name(f"{path.name}.begun"), path.with_name(f"{path.name}.json")
    reader = BlockReader(section, options, subwords)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        state = _continued(begun, journal, section)
        counts, marked = Counter(state.counts), state.stop
        with begun.open("r+b" if state.stop > section.start else "wb") as file:
            file.truncate(file.seek(4 * counts["tokens"]))
            for stop, (words, numbers, sums) in _read(reader, "number", "encoding", progress, state.stop):
                require_known(words, vocabulary, options, section, state.stop)
                ids = vocabulary.encode(words)[numbers]
                lacks = np.fromiter((word not in vocabulary.ids for word in words), np.bool_, len(words))
                counts.update(sums, tokens=len(ids), unknown=int(np.count_nonzero(lacks[numbers])))
                data = ids.astype("<i4").tobytes()
                file.write(data)
                state.stop, state.crc = stop, zlib.crc32(data, state.crc)
                state.has_words = state.has_words or _has_words(words)
                if stop - marked >= MARK:
                    _flush(file)
                    state.counts, marked = dict(counts), stop
                    write_atomic(journal, msgspec.json.encode(state))
            _flush(file)
        if not state.has_words:
            raise only_blank_lines(section.files, section.start, section.stop)
        begun.replace(path)
        journal.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(explain(path, error)) from error
    except UserError:
        for left in (begun, journal):
            left.unlink(missing_ok=True)
        raise
    lines = read_lines(section.files, section.start, section.stop, options)
    first = first_token(passages(lines, options, subwords), options, vocabulary)
    return Counts(**{name: counts[name] for name in ("tokens", "unknown", *_SUMS, "lines")}, first=first, sha256=sha256)


def _has_words(tokens: Collection[str]) -> bool:
    """Whether different tokens are more than `<eos>`."""
    return len(tokens) > (EOS in tokens)


def _continued(begun: Path, journal: Path, section: Section) -> _Begun:
    """How far an interrupted call came; the beginning of the section where its file is not as it left it."""
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        state = msgspec.json.decode(journal.read_bytes(), type=_Begun)
        crc, left = 0, 4 * state.counts["tokens"]
        with begun.open("rb") as file:
            while left and (block := file.read(min(left, 1 << 20))):
                crc, left = zlib.crc32(block, crc), left - len(block)
        if not left and crc == state.crc:
            return state
    return _Begun(stop=section.start)


def _flush(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


_reader: BlockReader | None = None


def _begin(section: Section, options: TextOptions, pieces: bytes | None) -> None:
    global _reader
    _reader = BlockReader(section, options, None if pieces is None else Subwords(pieces))


def _work(method: str, block: Block) -> Any:
    return getattr(_reader, method)(block)


def _read(
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
