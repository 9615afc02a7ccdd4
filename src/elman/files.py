"""Files that are written completely or not at all, digests, and run folders that one process at a time works in."""

import contextlib
import errno
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import filelock
import msgspec

from elman.errors import UserError, notice

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
        self._made: list[Path] = []

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
                if [path.name for path in self.folder.iterdir()] == [".lock"]:
                    (self.folder / ".lock").unlink()
            remove_empty(self._made)

    def _acquire(self) -> None:
        """Acquire the lock, by the existence of its file where the file system has no locks."""
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


def made_folders(folder: Path) -> list[Path]:
    """Make a folder, with its parents; those that were missing, the deepest first. Raises OSError."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def remove_empty(folders: list[Path]) -> None:
    """Remove those of some folders, the deepest first, that hold nothing."""
    with contextlib.suppress(OSError):
        for folder in folders:
            folder.rmdir()


@contextlib.contextmanager
def making(folder: Path) -> Iterator[None]:
    """Make a folder, with its parents; where the block fails, those that were missing and hold nothing are removed.

    Raises UserError where the folder cannot be made.
    """
    try:
        made = made_folders(folder)
    except OSError as error:
        raise UserError(explain(folder, error)) from error
    try:
        yield
    except BaseException:
        remove_empty(made)
        raise


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

    The folder is created if it is missing, and keeps a hidden file beside `path`. Raises UserError where the folder
    cannot be written.
    """
    lock = filelock.FileLock(path.with_name(f".{path.name}.lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the library, where the file system has no locks
            lock.acquire()
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise UserError(explain(path, error)) from error
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def replacing(path: Path, *, parents: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which takes the place of `path` in one step when the block succeeds.

    On any failure `path` keeps its old content and the temporary file is removed; raises UserError where the folder
    cannot be written, is missing (with `parents` it is made) or the disk is full. The new file has the permissions that
    the umask leaves.
    """
    # In a folder of its own, since libraries make temporary files of other names beside the one that they write.
    own = path.parent / f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
    temporary = own / f"{path.name}.part"
    try:
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        own.mkdir()
        temporary.touch()
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(own.stat().st_mode & 0o666)
        _replace(temporary, path)
    except OSError as error:
        raise UserError(explain(path, error)) from error
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _replace(new: Path, path: Path) -> None:
    """Give a file the place of another; Windows refuses while a program has that open, so it is tried for a second."""
    for _ in range(20 if os.name == "nt" else 0):
        try:
            new.replace(path)
            return
        except PermissionError:
            time.sleep(0.05)
    new.replace(path)


_ABANDONED = re.compile(r"\..+\.(\d+)-[0-9a-f]{8}\.tmp")


def remove_abandoned(folder: Path) -> None:
    """Remove what `replacing` had begun to write into a folder in processes that no longer run."""
    for path in folder.glob(".*.tmp"):
        made_by = _ABANDONED.fullmatch(path.name)
        if made_by and not _may_run(int(made_by[1]), path):
            shutil.rmtree(path, ignore_errors=True)


def _may_run(process: int, path: Path) -> bool:
    """Whether a process may still run that made a path: where processes cannot be looked up, within a day."""
    try:
        if os.name != "posix":
            return time.time() - path.stat().st_mtime < 24 * 60 * 60
        os.kill(process, 0)
    except (ProcessLookupError, FileNotFoundError):
        return False
    except (OSError, OverflowError):
        return True
    return True


def shipped_folder(name: str) -> Path:
    """A folder that comes with the package.

    In a checkout it is a link to the folder of that name, which Windows may write as a file, so that folder is taken.
    """
    here = Path(__file__).with_name(name)
    return here if here.is_dir() else Path(__file__).parents[2] / name


def cache_folder() -> Path:
    """`$ELMAN_CACHE`, or `$XDG_CACHE_HOME/elman`, or `~/.cache/elman`."""
    if own := os.environ.get("ELMAN_CACHE"):
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "elman"


def write_atomic(path: Path, data: bytes | str) -> None:
    """Write `data` (text as UTF-8) to `path`, completely or not at all; raises UserError as `replacing` does."""
    with replacing(path) as temporary:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)


def sha256_file(path: Path) -> str:
    """The SHA-256 digest of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_lines(*lines: str) -> str:
    """The SHA-256 digest, in hexadecimal, of lines joined by line feeds."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def canonical_json(value: Any) -> str:
    """A record, or plain values, as compact JSON with sorted keys: equal values give equal text, for digests."""
    return msgspec.json.encode(value, order="sorted").decode()


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Plain values as JSON; numbers that are not finite become null."""
    return json.dumps(finite(value), indent=indent, ensure_ascii=False, allow_nan=False)


def finite(value: Any) -> Any:
    """Plain values in which numbers that are not finite, which JSON cannot write, are None."""
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def require_utf8(path: Path | str, what: str) -> None:
    """Raise UserError where the name of a path is not UTF-8, which model files and JSON cannot hold."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="backslashreplace")
        raise UserError(f"{what}: the name {shown} is not UTF-8; choose another name") from None


def explain(path: Path, error: OSError) -> str:
    """The message for a user whose file could not be written."""
    if error.errno == errno.ENOENT and not path.parent.is_dir():
        return f"{path}: its folder has been removed; nothing more is written there"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{path}: the disk is full; the previous file, if any, is untouched; free some space and resume"
    return (
        f"{path}: cannot be written ({error.strerror}); choose another folder, with --out or, of the cache, with the"
        " variable ELMAN_CACHE"
    )
