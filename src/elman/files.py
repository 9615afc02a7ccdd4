"""Files that are written completely or not at all, digests, and run folders that one process at a time works in."""

import contextlib
import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import filelock
import msgspec

from elman.errors import UserError


class FolderLock:
    """A folder locked for one process while a block runs; a block that holds the lock may enter it again.

    The folder is created if it is missing, and keeps a file `.lock` with the process id of the last holder where other
    processes can read it. The lock ends with its process.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = filelock.FileLock(folder / ".lock", thread_local=False)

    def __enter__(self) -> Self:
        """Take the lock; raises UserError where another process holds it or the folder cannot be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0.2)  # `is_taken` of another process holds it for a moment
        except filelock.Timeout:
            raise UserError(
                f"{self.folder} is in use: {_holder(self.folder)} is training there; wait until it ends, or choose"
                " another --out"
            ) from None
        except OSError as error:
            raise UserError(explain(self.folder, error)) from error
        if isinstance(self._lock, filelock.UnixFileLock):  # elsewhere the file is locked itself, or is the lock
            with contextlib.suppress(OSError):  # the process id only informs; a full disk is reported by later writes
                Path(self._lock.lock_file).write_text(f"{os.getpid()}\n")
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def is_taken(folder: Path) -> bool:
    """Whether a process holds the lock of a folder now."""
    try:
        if (folder / ".lock").is_file():
            filelock.FileLock(folder / ".lock").acquire(blocking=False).lock.release()
    except OSError as error:
        return isinstance(error, filelock.Timeout)
    return False


def _holder(folder: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        return f"process {int((folder / '.lock').read_bytes()[:20])}"
    return "another process"


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which takes the place of `path` in one step when the block succeeds.

    On any failure `path` keeps its old content and the temporary file is removed; raises UserError where the folder
    cannot be written or the disk is full.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise UserError(explain(path, error)) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


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


def explain(path: Path, error: OSError) -> str:
    """The message for a user whose file could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{path}: the disk is full; the previous file, if any, is untouched; free some space and resume"
    return f"{path}: cannot be written ({error.strerror}); choose another folder with --out"
