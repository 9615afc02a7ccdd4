"""A text in one file or many, plain or compressed (`.gz`, `.zst`), read as one: nothing is joined or unpacked on disk.

The files follow each other in the given order. Each ends its last line, and a byte order mark at the beginning of a
later one is left out, so that shards give what one file with all their lines gives.
"""

import codecs
import contextlib
import functools
import gzip
import hashlib
import importlib
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from elman.errors import UserError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BLOCK = 1 << 20
LINE_FEED = b"\n"

COMPRESSED = (".gz", ".zst")
"""The ends of the names of files that are unpacked while they are read."""


class Measure(NamedTuple):
    """The size of a text in bytes, unpacked, and its SHA-256."""

    size: int
    sha256: str


def is_compressed(path: Path) -> bool:
    """Whether the name of a file says that it is compressed."""
    return path.suffix.lower() in COMPRESSED


def plain_name(path: Path) -> str:
    """The name of a file without the end that says that it is compressed."""
    return path.name[: -len(path.suffix)] if is_compressed(path) else path.name


def open_unpacked(path: Path) -> IO[bytes]:
    """A file to read, unpacked as it is read where it is compressed.

    Raises UserError where the package for `.zst` is missing; damage is found while it is read (`damaged`).
    """
    match path.suffix.lower():
        case ".gz":
            return cast("IO[bytes]", gzip.open(path))
        case ".zst":
            return cast("IO[bytes]", zstd(path).ZstdFile(path))
        case _:
            return path.open("rb", buffering=0)


def zstd(path: Path) -> Any:
    """The module of Python 3.14 that reads and writes Zstandard, or its backport; a message names the file."""
    for name in ("compression.zstd", "backports.zstd"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    raise UserError(f"{path}: .zst needs the package backports.zstd: pip install 'elman[zst]'")


def damaged(path: Path, error: Exception) -> UserError:
    """The error for a compressed file that cannot be unpacked, or a file that cannot be read."""
    if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
        return UserError(f"{path}: cannot be read ({error.strerror}); give a text file")
    reason = str(error) or type(error).__name__
    return UserError(f"{path}: the compressed file is damaged or incomplete ({reason}); write it again")


def reading_errors(path: Path) -> tuple[type[Exception], ...]:
    """What reading a file raises where it is damaged or cannot be read."""
    known: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error)
    return (*known, zstd(path).ZstdError) if path.suffix.lower() == ".zst" else known


@dataclass(frozen=True)
class Files:
    """The files of a text, one or more, in order; `marked`: a byte order mark at its beginning is a part of it."""

    paths: tuple[Path, ...]
    marked: bool = field(default=True, compare=False)

    @classmethod
    def of(cls, source: "Files | Path") -> "Files":
        """A path as the only file."""
        return source if isinstance(source, Files) else cls((source,))

    @property
    def name(self) -> str:
        """What messages call it: the file, or the first of many and their number."""
        return self._called(str(self.paths[0]))

    @property
    def short_name(self) -> str:
        """As `name`, without the folder."""
        return self._called(self.paths[0].name)

    def _called(self, first: str) -> str:
        return first if len(self.paths) == 1 else f"{first} and {len(self.paths) - 1} more"

    @property
    def is_plain(self) -> bool:
        """Whether it is one file as it stands, so that any byte of it can be sought."""
        return len(self.paths) == 1 and not is_compressed(self.paths[0])

    @functools.cached_property
    def lead(self) -> int:
        """The bytes of the first file that precede the text: a byte order mark that is no part of it."""
        if self.marked:
            return 0
        try:
            with open_unpacked(self.paths[0]) as file:
                return len(codecs.BOM_UTF8) if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8 else 0
        except reading_errors(self.paths[0]) as error:
            raise damaged(self.paths[0], error) from None

    @property
    def size(self) -> int:
        """The bytes of the text; where a file is compressed, or there are several, it is read for them once."""
        return self.paths[0].stat().st_size - self.lead if self.is_plain else self.measure.size

    @functools.cached_property
    def measure(self) -> Measure:
        """Size and SHA-256, by reading the text once; those of the same text in one plain file are the same."""
        size, digest = 0, hashlib.sha256()
        for block in self.blocks():
            size += len(block)
            digest.update(block)
        return Measure(size, digest.hexdigest())

    def place(self, offset: int) -> str:
        """The file and the line that a byte of the text is in, FILE:LINE."""
        for number, path in enumerate(self.paths):
            line, ended = 1, True
            for count, block in enumerate(Files.of(path).blocks()):
                data = block.removeprefix(codecs.BOM_UTF8) if number and not count else block
                if offset < len(data):
                    return f"{path}:{line + data.count(LINE_FEED, 0, offset)}"
                offset, line, ended = offset - len(data), line + data.count(LINE_FEED), data.endswith(LINE_FEED)
            offset -= not ended
        raise AssertionError("the byte is in the text")

    def reading(self, start: int = 0) -> BinaryIO:
        """The text from a byte on; raises UserError, while it is read, where a file is damaged or cannot be read."""
        reader = _Reader(self.paths, marked=self.marked)
        if self.is_plain:
            reader.seek_first(start + self.lead if start else 0)
            return cast("BinaryIO", io.BufferedReader(reader, BLOCK))
        file = cast("BinaryIO", io.BufferedReader(reader, BLOCK))
        left = start
        while left and (block := file.read(min(BLOCK, left))):
            left -= len(block)
        return file

    def blocks(self) -> Iterator[bytes]:
        """The text in blocks of bytes."""
        with self.reading() as file:
            while block := file.read(BLOCK):
                yield block


class _Reader(io.RawIOBase):
    """The unpacked bytes of files one after another."""

    def __init__(self, paths: tuple[Path, ...], *, marked: bool) -> None:
        self._waiting, self._path = list(reversed(paths)), paths[0]
        self._file: IO[bytes] | None = None
        self._marked, self._ended = marked, True  # whether the next file keeps its mark; whether a line has ended
        self._ahead = b""
        self._errors = reading_errors(self._path)

    def readable(self) -> bool:
        return True

    def seek_first(self, start: int) -> None:
        """Begin at a byte of the first file, which is plain."""
        if start:
            self._open_next()
            assert self._file is not None
            self._file.seek(start)
            self._ahead = b""

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer).cast("B")
        while True:
            if self._file is None:
                if not self._waiting:
                    return 0
                self._open_next()
            found = self._some(view)
            if found:
                self._ended = view[found - 1] == 0x0A
                return found
            self._close()
            if self._waiting and not self._ended:
                view[0], self._ended = 0x0A, True
                return 1

    def _some(self, view: memoryview) -> int:
        if self._ahead:
            found = min(len(view), len(self._ahead))
            view[:found], self._ahead = self._ahead[:found], self._ahead[found:]
            return found
        try:
            return int(cast("Any", self._file).readinto(view))
        except self._errors as error:
            raise damaged(self._path, error) from None

    def _open_next(self) -> None:
        self._path = self._waiting.pop()
        self._errors = reading_errors(self._path)
        try:
            self._file = open_unpacked(self._path)
            if not self._marked:
                self._ahead = self._file.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
        except self._errors as error:
            raise damaged(self._path, error) from None
        self._marked = False

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def close(self) -> None:
        self._close()
        super().close()
