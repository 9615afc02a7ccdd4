"""A text prepared: its words counted and its ids written, block by block, in constant memory.

What was interrupted is continued where it ended.
"""

import contextlib
import os
import zlib
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from elman.config.text import TextOptions
from elman.data.text.block_reading import SUMS, BlockReader, Progress, read_blocks
from elman.data.text.lacking import require_known
from elman.data.text.passages import TokenCounts, first_token, only_blank_lines, passages
from elman.data.text.sources import Section
from elman.data.text.subwords import Subwords
from elman.data.text.utf8 import read_lines
from elman.data.text.vocabulary import EOS, Vocabulary
from elman.data.text.word_counts import WordCounts
from elman.errors import UserError
from elman.files import explain, write_atomic

MARK = 1 << 27
"""Bytes of a text after which a file that is being written is marked as complete up to there."""


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
    for stop, tokens in read_blocks(reader, "count", "counting words", progress, already):
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
            for stop, (words, numbers, sums) in read_blocks(reader, "number", "encoding", progress, state.stop):
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
    return Counts(**{name: counts[name] for name in ("tokens", "unknown", *SUMS, "lines")}, first=first, sha256=sha256)


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
