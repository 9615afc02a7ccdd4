"""Archives and arrays of others: damage of any kind is one line, and what they unpack to is bounded.

Nothing is read by a path inside an archive, and nothing is unpickled.
"""

import contextlib
import math
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from elman.errors import UserError
from elman.formats import NPY

BLOCK = 1 << 20
LEAST_ALLOWED, RATIO = 1 << 30, 100
"""An archive may unpack to `LEAST_ALLOWED` bytes, or to `RATIO` times its own size if that is more."""

LIMIT = "ELMAN_MAX_UNPACKED_GB"  # the environment variable that sets another limit

_HEADERS: dict[tuple[int, int], Callable[[IO[bytes]], tuple[tuple[int, ...], bool, np.dtype[Any]]]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class Archive:
    """An archive that is being read; a message about damage begins with `problem`, every message ends with `advice`.

    Raises UserError where `ELMAN_MAX_UNPACKED_GB` is not a number.
    """

    def __init__(
        self,
        path: Path,
        problem: str = "the archive is damaged or encrypted",
        advice: str = "delete it and download it again",
    ) -> None:
        self.path, self.problem, self.advice = path, problem, advice
        self._unpacked, self.allowed, limit = 0, 0, os.environ.get(LIMIT)
        if limit is None:
            self.allowed = max(LEAST_ALLOWED, RATIO * path.stat().st_size)
            return
        try:
            self.allowed = int(float(limit) * (1 << 30))
        except (ValueError, OverflowError):
            raise UserError(f"{LIMIT} is {limit!r}; set it to a number of gigabytes, such as 4") from None

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """What the block raises, other than UserError, is damage: libraries raise a dozen kinds of errors for it."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise UserError(f"{self.path}: {self.problem} ({reason}); {self.advice}") from None

    def count(self, size: int) -> None:
        """Count bytes that are unpacked, or are going to be; raises UserError beyond the limit."""
        self._unpacked += size
        if self._unpacked > self.allowed:
            raise UserError(
                f"{self.path}: it unpacks to {self._unpacked:,} bytes or more, and {self.allowed:,} are allowed for an"
                f" archive of {self.path.stat().st_size:,}; {self.advice}, or set {LIMIT} if it is genuine"
            )

    def blocks(self, file: IO[bytes], size: int | None = None) -> Iterator[bytes]:
        """At most `size` bytes of a member (all of them by default), in blocks."""
        done = 0
        while True:
            with self.reading():
                block = file.read(BLOCK if size is None else min(BLOCK, size - done))
            if not block:
                return
            done += len(block)
            self.count(len(block))
            yield block

    @contextlib.contextmanager
    def open_zip(self) -> Iterator[zipfile.ZipFile]:
        with self.reading():
            opened = zipfile.ZipFile(self.path)
        with opened:
            yield opened

    def member(self, opened: zipfile.ZipFile, name: str) -> IO[bytes]:
        """The first member of a zip file whose last name is `name`; raises UserError where there is none."""
        for info in opened.infolist():
            if not info.is_dir() and info.filename.rsplit("/", 1)[-1] == name:
                with self.reading():
                    return opened.open(info)
        raise UserError(f"{self.path}: no file {name} inside; {self.advice}")

    def tar_members(self) -> Iterator[tuple[str, IO[bytes]]]:
        """The files of a tar archive, compressed or not, one after another, by name."""
        with self.reading():
            opened = tarfile.open(self.path, "r|*")  # noqa: SIM115 - closed below
        with opened:
            while True:
                with self.reading():
                    member = opened.next()
                    file = opened.extractfile(member) if member is not None and member.isfile() else None
                if member is None:
                    return
                if file is not None:
                    yield member.name, file


def read_npz(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The plain arrays of an .npz file by name.

    Raises UserError where the file is damaged, has objects, or declares arrays larger than it may hold.
    """
    archive, arrays = Archive(path, "not an .npz file of plain arrays", "give another"), {}
    with archive.open_zip() as opened:
        for info in opened.infolist():
            if info.filename.endswith(".npy"):
                with archive.reading(), opened.open(info) as file:
                    arrays[info.filename.removesuffix(".npy")] = _array(archive, file)
    return arrays


def read_npy(path: Path) -> npt.NDArray[Any]:
    """The plain array of an .npy file; raises UserError as `read_npz` does."""
    archive = Archive(path, "not an .npy file of plain arrays", "give another")
    with archive.reading(), path.open("rb") as file:
        return _array(archive, file)


def is_npy(path: Path) -> bool:
    """Whether a file is an .npy file by its name, or by its first bytes; False where they cannot be read."""
    if path.suffix == ".npy":
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(NPY)) == NPY
    except OSError:
        return False


def _array(archive: Archive, file: IO[bytes]) -> npt.NDArray[Any]:
    """An array in the format of NumPy, allocated only when its size is known to be allowed."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"an array in version {version[0]}.{version[1]} of the format; write it as plain numbers")
    shape, in_columns, kind = _HEADERS[version](file)
    if kind.hasobject or kind.names or min(shape, default=0) < 0:
        raise ValueError(f"an array of {kind} {list(shape)}; write it as plain numbers")
    size = math.prod(shape) * kind.itemsize
    archive.count(size)
    data = bytearray()
    while len(data) < size and (block := file.read(min(BLOCK, size - len(data)))):
        data += block
    if len(data) < size:
        raise ValueError(f"{size:,} bytes are declared, and {len(data):,} are there")
    return np.frombuffer(data, kind).reshape(shape, order="F" if in_columns else "C")
