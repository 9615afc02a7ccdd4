"""A folder for one process at a time, by a lock that the operating system takes back when its holder dies."""

import contextlib
import os
import sys
import time
from io import BufferedReader, FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from elman.errors import UserError
from elman.files import explain

if sys.platform != "win32":
    import fcntl

_NAME = ".lock"


class FolderLock:
    """Held while a block runs; a block that holds it may hold it again within.

    The folder is made where it is missing, and keeps a file `.lock` with the number of the last holder's process.
    Where the system, or the file system, has no such locks, nothing is held.

    Args:
        folder: what is locked, once a block begins.

    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.blocks = folder, 0
        self._file: FileIO | None = None

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            UserError: another process has it, or the folder cannot be written.

        """
        if self.blocks == 0:
            self._file = _take(self.folder)
        self.blocks += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give it back."""
        self.blocks -= 1
        if self.blocks == 0 and self._file is not None:
            self._file.close()
            self._file = None


def is_taken(folder: Path) -> bool:
    """Whether a process holds the lock of a folder now."""
    try:
        with (folder / _NAME).open("rb") as file:
            return not _locked(file, alone=False)
    except OSError:
        return False


def _take(folder: Path) -> FileIO:
    path = folder / _NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b", buffering=0)
    except OSError as error:
        raise UserError(explain(folder, error)) from error
    if not _locked(file, alone=True):
        time.sleep(0.2)  # who only asks whether it is taken holds it for a moment
        if not _locked(file, alone=True):
            raise _in_use(folder, file)
    with contextlib.suppress(OSError):  # the number is for people; a full disk is told of by what must be written
        file.truncate(0)
        file.write(f"{os.getpid()}\n".encode())
    return file


def _in_use(folder: Path, file: FileIO) -> UserError:
    file.seek(0)
    holder = file.read(20).decode(errors="replace").strip()
    file.close()
    who = f"process {holder}" if holder.isdigit() else "another process"
    return UserError(f"{folder} is in use: {who} is training there; wait until it ends, or choose another --out")


def _locked(file: FileIO | BufferedReader, *, alone: bool) -> bool:
    """Lock an open file, alone or beside others who do not ask for it alone; whether that was possible."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True
