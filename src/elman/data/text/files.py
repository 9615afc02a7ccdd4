"""A text in one file or many, plain or compressed (`.gz`, `.zst`), read as one: nothing is joined or unpacked on disk.

The files follow each other in the given order, and each ends its last line, so that shards give what one file with all
their lines gives.
"""

import codecs
import contextlib
import functools
import gzip
import hashlib
import importlib
import io
import itertools
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from elman.data.lines import with_line_feeds
from elman.errors import UserError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BLOCK = 1 << 20

COMPRESSED = (".gz", ".zst")  # the ends of the names of files that are unpacked while they are read


class Measure(NamedTuple):
    """The size of a text in bytes, unpacked, and its SHA-256."""

    size: int
    sha256: str


def is_compressed(path: Path) -> bool:
    return path.suffix.lower() in COMPRESSED


def plain_name(path: Path) -> str:
    """The name of a file without the end that says that it is compressed."""
    return path.name[: -len(path.suffix)] if is_compressed(path) else path.name


def zstd(path: Path) -> Any:
    """The module of Python 3.14 that reads and writes Zstandard, or its backport; a message names the file."""
    for name in ("compression.zstd", "backports.zstd"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    raise UserError(f"{path}: .zst needs the package backports.zstd: pip install 'elman[zst]'")


def unpacked(path: Path, start: int = 0) -> Iterator[bytes]:
    """The blocks of a file from a byte on, unpacked; raises UserError where it is damaged or cannot be read."""
    zstandard = zstd(path) if path.suffix.lower() == ".zst" else None
    damage = (gzip.BadGzipFile, EOFError, zlib.error, *([zstandard.ZstdError] if zstandard else ()))
    try:
        file: Any
        if path.suffix.lower() == ".gz":
            file = gzip.open(path)  # noqa: SIM115 - closed below
        else:
            file = zstandard.ZstdFile(path) if zstandard else path.open("rb", buffering=0)
        with file:
            file.seek(start)
            while block := file.read(BLOCK):
                yield block
    except damage as error:
        reason = str(error) or type(error).__name__
        raise UserError(f"{path}: the compressed file is damaged or incomplete ({reason}); write it again") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); give a text file") from None


@dataclass(frozen=True)
class Files:
    """The files of a text, one or more, in order.

    Unless it is `exact`, a byte order mark at its beginning is no part of it, and lone carriage returns are line feeds
    (`elman.data.lines`).
    """

    paths: tuple[Path, ...]
    exact: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, source: "Files | Path", *, exact: bool = False) -> "Files":
        return source if isinstance(source, Files) else cls((source,), exact)

    @property
    def stored(self) -> "Files":
        """The text with every byte as it is stored."""
        return replace(self, exact=True)

    @property
    def name(self) -> str:
        """What messages call it: the file, or the first of many and their number."""
        return str(self.paths[0].parent / self.short_name)

    @property
    def short_name(self) -> str:
        first = self.paths[0].name
        return first if len(self.paths) == 1 else f"{first} and {len(self.paths) - 1} more"

    @property
    def is_plain(self) -> bool:
        """Whether it is one file as it stands, so that any byte of it can be sought."""
        return len(self.paths) == 1 and not is_compressed(self.paths[0])

    @functools.cached_property
    def lead(self) -> int:
        """The bytes of the first file that precede the text: a byte order mark that is no part of it."""
        first = b"" if self.exact else next(unpacked(self.paths[0]), b"")
        return len(codecs.BOM_UTF8) if first.startswith(codecs.BOM_UTF8) else 0

    @property
    def size(self) -> int:
        """The bytes of the text; where a file is compressed, or there are several, it is read for them once."""
        return self.paths[0].stat().st_size - self.lead if self.is_plain else self.measure.size

    @functools.cached_property
    def measure(self) -> Measure:
        """Size and SHA-256, by reading the text once; the same as for the text in one plain file."""
        size, digest = 0, hashlib.sha256()
        for block in self.blocks():
            size += len(block)
            digest.update(block)
        return Measure(size, digest.hexdigest())

    def place(self, offset: int) -> str:
        """The file and the line that a byte of the text is in, FILE:LINE."""
        for number, path in enumerate(self.paths):
            line, ended = 1, True
            for block in self._of_file(number):
                if offset < len(block):
                    line += block.count(b"\n", 0, offset)
                    return f"{path}:{line}"
                offset, line, ended = offset - len(block), line + block.count(b"\n"), block.endswith(b"\n")
            offset -= not ended
        raise AssertionError("the byte is in the text")

    def reading(self, start: int = 0) -> BinaryIO:
        """The text from a byte on; raises UserError, while it is read, where a file is damaged or cannot be read."""
        return cast("BinaryIO", io.BufferedReader(Stream(self.blocks(start)), 1 << 16))

    def blocks(self, start: int = 0) -> Iterator[bytes]:
        """The text in blocks of bytes, from byte `start`."""
        left, ended = start, True
        if self.is_plain and start:
            yield from self._of_file(0, start + self.lead)
            return
        for number in range(len(self.paths)):
            for block in itertools.chain([] if ended else [b"\n"], self._of_file(number)):
                ended = block.endswith(b"\n")
                if left < len(block):
                    yield block[left:] if left else block
                left = max(0, left - len(block))

    def _of_file(self, number: int, start: int = 0) -> Iterator[bytes]:
        """The blocks of file `number`, from byte `start` as stored."""
        found = unpacked(self.paths[number], start)
        if not start and (number or not self.exact):
            found = _without_mark(found)
        return found if self.exact else with_line_feeds(found)


def _without_mark(blocks: Iterator[bytes]) -> Iterator[bytes]:
    yield next(blocks, b"").removeprefix(codecs.BOM_UTF8)
    yield from blocks


class Stream(io.RawIOBase):
    """A file that reads from an iterator of blocks."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._held = blocks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        view = memoryview(buffer).cast("B")
        while not self._held:
            if (block := next(self._blocks, None)) is None:
                return 0
            self._held = memoryview(block)
        size = min(len(view), len(self._held))
        view[:size], self._held = self._held[:size], self._held[size:]
        return size
