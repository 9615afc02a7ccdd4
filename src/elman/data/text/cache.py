"""The cache folder: what is computed once from texts, each part in a folder that is complete or made again."""

import atexit
import contextlib
import dataclasses
import functools
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from elman.data.text.passages import TokenCounts
from elman.errors import notice
from elman.files import canonical_json, remove_abandoned, sha256_lines, write_atomic
from elman.formats import parse_json
from elman.jobs.locks import waiting_for


@dataclasses.dataclass(frozen=True, kw_only=True)
class Counts:
    """The counts of a split, and the digest of the source text.

    Attributes:
        unknown: how many of them the vocabulary lacks; an `<unk>` that is written in the text is known.
        characters, num_bytes, num_words, unseparated: sums over the passages (`elman.data.text.passages.Passage`); with
            many letters in clauses without spaces, `unseparated`, `num_words` is meaningless.
        lines: how many lines were read (one longer than 64 KiB counts as several).
        first: what the first token contributes to these counts.
    """

    unknown: int
    characters: int
    num_bytes: int
    num_words: int
    unseparated: int
    lines: int
    first: TokenCounts
    sha256: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Encoded(Counts):
    """The counts of an encoded split as the cache keeps them, and how many tokens it has."""

    tokens: int


class Contents(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a complete folder of the cache holds: the size and CRC-32 of each file, and the counts of each split."""

    files: dict[str, tuple[int, int]]
    splits: dict[str, Encoded]


_CONTENTS = "contents.json"  # in a folder of the cache: its `Contents`, with their digest; written last
Made = tuple[Iterable[str], dict[str, Encoded]]  # the names of the files that were made, and the counts of each split


def kept(folder: Path, make: Callable[[Path], Made]) -> tuple[Path, dict[str, Encoded]]:
    """A complete folder of the cache and its counts; where it is not complete one process at a time makes its files."""
    folder = place(folder)
    if (found := _contents(folder)) is None:
        with waiting_for(folder / _CONTENTS):
            if (found := _contents(folder)) is None:
                names, splits = make(folder)
                found = Contents(files={name: _sum_of(folder / name) for name in names}, splits=splits)
                sealed = {"digest": sha256_lines(canonical_json(found)), "contents": msgspec.to_builtins(found)}
                write_atomic(folder / _CONTENTS, msgspec.json.format(msgspec.json.encode(sealed)))
    return folder, found.splits


def _contents(folder: Path) -> Contents | None:
    """None if the folder is not complete, or its files are not those that it had, which is reported."""
    path, damaged = folder / _CONTENTS, _CONTENTS
    if not path.is_file():
        return None
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        sealed = parse_json(path.read_bytes())
        found = msgspec.convert(sealed["contents"], Contents)
        if sealed["digest"] == sha256_lines(canonical_json(found)):
            wrong = (name for name, wanted in found.files.items() if _sum_of(folder / name) != wanted)
            damaged = next(wrong, "")
            if not damaged:
                return found
    notice(f"{folder / damaged}: this file of the cache is damaged; it is made again from the text")
    return None


def _sum_of(path: Path) -> tuple[int, int]:
    """The size of a file and its CRC-32, which takes a quarter of the time of SHA-256; it finds damage, not forgery."""
    size, crc = 0, 0
    with path.open("rb") if path.is_file() else contextlib.nullcontext() as file:
        while file is not None and (block := file.read(1 << 20)):
            size, crc = size + len(block), zlib.crc32(block, crc)
    return size, crc


def place(folder: Path) -> Path:
    """A folder of the cache; where it is not complete and cannot be written, one that ends with the process."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if os.access(folder, os.W_OK):
        remove_abandoned(folder)
        return folder
    if _contents(folder) is not None:
        return folder
    notice(
        f"{folder.parents[1]}: the cache cannot be written; texts are encoded into a temporary folder each time, unless"
        " the variable ELMAN_CACHE names a folder that can"
    )
    return _temporary() / folder.parent.name / folder.name


@functools.cache
def _temporary() -> Path:
    folder = tempfile.mkdtemp(prefix="elman-cache-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
