"""Files that are either whole or not there: write to a temporary name, flush to the disk, rename."""

import contextlib
import errno
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from io import BufferedReader, FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from elman.errors import UserError

# FOLDED lock.py: A folder for one process at a time, by a lock that the operating system takes back when its holder dies.
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


# TARGET
@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; when the block ends well it takes `path`'s place at once.

    On any failure `path` keeps its old content and the temporary file is removed.

    Raises:
        UserError: the folder cannot be written or the disk is full.

    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        _flush(temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise UserError(explain(path, error)) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_atomic(path: Path, data: bytes | str) -> None:
    """Write `data` (text as UTF-8) to `path`, wholly or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)


def sha256_file(path: Path, progress: Callable[[int], None] | None = None) -> str:
    """The SHA-256 digest of a file in hexadecimal; `progress` is told the bytes of each block read."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            if progress is not None:
                progress(len(block))
    return digest.hexdigest()


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def explain(path: Path, error: OSError) -> str:
    """What to tell a user whose file could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{path}: the disk is full; the previous file, if any, is untouched; free some space and resume"
    return f"{path}: cannot be written ({error.strerror}); choose another folder with --out"
