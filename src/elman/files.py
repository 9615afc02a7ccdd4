"""Files that are either whole or not there: write to a temporary name, flush to the disk, rename."""

import contextlib
import errno
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from elman.errors import UserError


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
