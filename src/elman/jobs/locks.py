"""Folders that one process at a time works in, and files that one process at a time makes."""

import contextlib
import errno
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import filelock

from elman.errors import UserError, notice
from elman.files import explain, made_folders, remove_abandoned, remove_empty

NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)
"""Errors of file systems without locks."""

HELD = ".held"
"""The file whose existence is the lock of a folder on such a file system."""


class FolderLock:
    """A folder locked for one process while a block runs; a block that holds the lock may enter it again.

    The folder is created if it is missing, and keeps a file `.lock` with the process id of the last holder where other
    processes can read it. The lock ends with its process; where the file system has no such locks, that is reported
    once on standard error, and the lock is the existence of the file. What killed processes had begun to write is
    removed when the lock is taken. Folders that were made for the lock are removed where the block fails before
    anything is written there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = filelock.FileLock(folder / ".lock", thread_local=False)
        self._made: list[tuple[Path, int]] = []

    def __enter__(self) -> Self:
        """Take the lock; raises UserError where another process holds it or the folder cannot be written."""
        try:
            self._made = made_folders(self.folder) or self._made
            self._acquire()
        except filelock.Timeout:
            raise UserError(
                f"{self.folder} is in use: {_holder(self.folder)} is training there; wait until it ends, or choose"
                " another --out"
            ) from None
        except OSError as error:
            raise UserError(explain(self.folder, error)) from error
        if isinstance(self._lock, filelock.UnixFileLock):  # elsewhere the file is locked itself, or is the lock
            with contextlib.suppress(OSError):  # the process id only informs; a full disk is reported by later writes
                Path(self._lock.lock_file).write_text(f"{os.getpid()}\n", encoding="utf-8")
        if self._lock.lock_counter == 1:
            remove_abandoned(self.folder)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        last = self._lock.lock_counter == 1
        self._lock.release()
        if last and kind is not None and self._made:
            with contextlib.suppress(OSError):
                own = self.folder.stat().st_ino == self._made[0][1]
                if own and [path.name for path in self.folder.iterdir()] == [".lock"]:
                    (self.folder / ".lock").unlink()
            remove_empty(self._made)

    def _acquire(self) -> None:
        wait = 0.2  # `is_taken` of another process holds it for a moment
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the library, about the same
            try:
                self._lock.acquire(timeout=wait)
            except OSError as error:
                if isinstance(error, filelock.Timeout) or error.errno not in NO_LOCKS:
                    raise
                self._lock = filelock.SoftFileLock(self.folder / HELD, thread_local=False)
                self._lock.acquire(timeout=wait)
        if isinstance(self._lock, filelock.SoftFileLock):
            notice(
                f"{self.folder}: the file system has no locks; after a kill remove {self._lock.lock_file} by hand, and"
                " let one machine at a time train there"
            )


def is_taken(folder: Path) -> bool:
    """Whether a process holds the lock of a folder now."""
    try:
        if (folder / ".lock").is_file():
            filelock.FileLock(folder / ".lock").acquire(blocking=False).lock.release()
    except OSError as error:
        return isinstance(error, filelock.Timeout) or (folder / HELD).exists()
    return False


def _holder(folder: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        return f"process {int((folder / '.lock').read_bytes()[:20])}"
    return "another process"


@contextlib.contextmanager
def waiting_for(path: Path) -> Iterator[None]:
    """Let one process at a time run the block, which makes the file at `path`; where there are no locks, all at once.

    The folder is created if it is missing, and keeps a hidden file next to `path`. Raises UserError where the folder
    cannot be written.
    """
    lock = filelock.FileLock(path.with_name(f".{path.name}.lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the library, where the file system has no locks
            try:
                lock.acquire(blocking=False)
            except filelock.Timeout:
                notice(f"{path}: another process makes this; it is waited for")
                lock.acquire()
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise UserError(explain(path, error)) from error
    try:
        yield
    finally:
        lock.release()
