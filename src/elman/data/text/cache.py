"""Texts encoded once: int32 files in a cache folder, mapped into memory when opened."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from elman.config.text import TextOptions
from elman.data.text.lines import Passage, read_passages
from elman.data.text.sources import Section
from elman.data.text.subwords import Subwords
from elman.data.text.vocabulary import Vocabulary
from elman.files import replacing, write_atomic

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done and how much there is (bytes)."""

_EVERY = 1000


class SplitRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of an encoded split besides its ids."""

    tokens: int
    unknown: int
    characters: int
    num_bytes: int
    num_words: int
    unseparated: int
    lines: int
    sha256: str


def cache_folder() -> Path:
    """`$ELMAN_CACHE`, or `$XDG_CACHE_HOME/elman`, or `~/.cache/elman`."""
    if own := os.environ.get("ELMAN_CACHE"):
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "elman"


def count_words(
    sections: list[Section], options: TextOptions, progress: Progress | None, subwords: Subwords | None = None
) -> Counter[str]:
    """How often each token occurs in the sections, in order of first appearance."""
    counts: Counter[str] = Counter()
    for section in sections:
        for passage in _read(section, options, "counting words", progress, subwords):
            counts.update(passage.words)
    return counts


def encode_section(
    section: Section,
    sha256: str,
    vocabulary: Vocabulary,
    options: TextOptions,
    path: Path,
    progress: Progress | None,
    subwords: Subwords | None = None,
) -> SplitRecord:
    """Write the ids of a section to `path` as little-endian int32, wholly or not at all.

    Raises:
        UserError: the text is bad, the folder cannot be written, or a word is unknown and there is no
            `<unk>`.

    """
    tokens = unknown = characters = num_bytes = num_words = unseparated = lines = 0
    with replacing(path) as temporary, temporary.open("wb") as file:
        source = _read(section, options, "encoding", progress, subwords)
        for passage in source:
            ids = vocabulary.encode(passage.words)
            file.write(ids.astype("<i4").tobytes())
            tokens += len(ids)
            unknown += 0 if vocabulary.unk is None else int(np.count_nonzero(ids == vocabulary.unk))
            characters += passage.characters
            num_bytes += passage.num_bytes
            num_words += passage.num_words
            unseparated += passage.unseparated
            lines += 1
    return SplitRecord(
        tokens=tokens,
        unknown=unknown,
        characters=characters,
        num_bytes=num_bytes,
        num_words=num_words,
        unseparated=unseparated,
        lines=lines,
        sha256=sha256,
    )


def map_tokens(path: Path, tokens: int) -> npt.NDArray[np.int32]:
    """The ids of a split, [tokens], read-only and not read before they are used."""
    return np.memmap(path, dtype="<i4", mode="r", shape=(tokens,))


def save_record(folder: Path, record: dict[str, SplitRecord]) -> None:
    """Say that `folder` is complete; written after everything else."""
    write_atomic(folder / "splits.json", msgspec.json.format(msgspec.json.encode(record)))


def load_record(folder: Path) -> dict[str, SplitRecord] | None:
    """What `save_record` wrote, or nothing if the folder is not complete."""
    try:
        record = msgspec.json.decode((folder / "splits.json").read_bytes(), type=dict[str, SplitRecord])
        whole = all((folder / f"{name}.int32").stat().st_size == 4 * split.tokens for name, split in record.items())
    except (OSError, msgspec.MsgspecError):
        return None
    return record if whole else None


def _read(
    section: Section, options: TextOptions, what: str, progress: Progress | None, subwords: Subwords | None
) -> Iterator[Passage]:
    stop = section.path.stat().st_size if section.stop is None else section.stop
    total, done = stop - section.start, 0
    source = read_passages(section.path, options, section.start, section.stop, subwords)
    for number, passage in enumerate(source):
        yield passage
        done += passage.num_bytes
        if progress is not None and number % _EVERY == 0:
            progress(f"{what}: {section.path.name}", min(done, total), total)
    if progress is not None:
        progress(f"{what}: {section.path.name}", total, total)
