"""Files that are written completely or not at all, the devices and pipes in their place, and digests."""

import contextlib
import errno
import functools
import hashlib
import json
import math
import os
import platform
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from elman.errors import UserError


def expanded(path: Path | str) -> Path:
    """A path with the home folder in the place of `~`, or of `~NAME`; where there is no such user, as it is."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - raises nothing


def made_folders(folder: Path) -> list[tuple[Path, int]]:
    """Make a folder, with its parents; those that were missing with their inodes, deepest first. Raises OSError."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return [(path, path.stat().st_ino) for path in missing]


def remove_empty(folders: list[tuple[Path, int]]) -> None:
    """Remove the folders, the deepest first, that hold nothing and whose place no other has taken."""
    with contextlib.suppress(OSError):
        for folder, number in folders:
            if folder.stat().st_ino == number:
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


def require_own(folder: Path, *marks: str) -> None:
    """Raise UserError where a folder holds files of others, which could be replaced: it has none of the `marks`.

    A folder that is missing, or empty apart from hidden files, is free.
    """
    if not folder.is_dir() or any((folder / mark).exists() for mark in marks):
        return
    if others := sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")):
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        raise UserError(
            f"{folder} holds other files ({', '.join(others[:3])}{more}), which could be replaced; choose another"
            " folder"
        )


SIGNED = re.compile(rb"Written by `?elman")
"""In pages and summaries that are our own, on whatever machine they were written."""


def is_signed(path: Path) -> bool:
    """Whether a file is a page or a summary of ours; raises OSError where it cannot be read."""
    return SIGNED.search(path.read_bytes()) is not None


_OUTPUTS: set[Path] = set()


def require_replaceable(path: Path) -> None:
    """Raise UserError where `path` is a file that elman has not written, or that has been changed since.

    From here on what `replacing` writes at `path` counts as written by elman: the cache keeps the size and the time of
    each file. A missing or empty file, and a device, pipe or open file, can always be written.
    """
    given, path = path, path.absolute()
    if path.is_file() and not is_stream(path) and (found := path.stat()).st_size:
        with contextlib.suppress(OSError):
            if _version(found) in _ledger(path).read_text(encoding="utf-8").splitlines():
                _OUTPUTS.add(path)
                return
        try:
            signed = path.suffix in (".html", ".md", ".json") and is_signed(path)
        except OSError as error:
            raise UserError(explain(path, error)) from error
        if not signed:
            raise UserError(
                f"{given} is there already, and is not a file as elman has written it; choose another name, or move it"
            )
    _OUTPUTS.add(path)


def _ledger(path: Path) -> Path:
    """A file of the cache with a line for each version of an output that was written."""
    return cache_folder() / "outputs" / hashlib.sha256(os.fsencode(path)).hexdigest()[:32]


def _version(found: os.stat_result) -> str:
    return f"{found.st_size} {found.st_mtime_ns}"


def _record(new: Path, path: Path) -> None:
    """Note that a file, which takes the place of an output now, is elman's; without a cache nothing is noted."""
    if path.absolute() in _OUTPUTS:
        with contextlib.suppress(OSError):
            ledger = _ledger(path.absolute())
            ledger.parent.mkdir(parents=True, exist_ok=True)
            with ledger.open("a", encoding="utf-8") as file:
                file.write(f"{_version(new.stat())}\n")


@contextlib.contextmanager
def replacing(path: Path, *, parents: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which takes the place of `path` in one step when the block succeeds.

    On any failure `path` keeps its old content and the temporary file is removed; raises UserError where the folder
    cannot be written, is missing (with `parents` it is made) or the disk is full. The new file has the permissions that
    the umask leaves; what killed processes left beside it is removed. A device, a pipe or another stream is not
    replaced: what was written is copied into it.
    """
    # In a folder of its own, since libraries make temporary files of other names beside the one that they write.
    streamed = is_stream(path)
    own = (Path(tempfile.gettempdir()) if streamed else path.parent) / _temporary_name(path)
    temporary = own / f"{path.name}.part"
    try:
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        _tidy(own.parent)
        own.mkdir()
        temporary.touch()
        yield temporary
        if streamed:
            with temporary.open("rb") as file, _opened(path) as stream:
                shutil.copyfileobj(file, stream)
            return
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(own.stat().st_mode & 0o666)
        _record(temporary, path)
        _replace(temporary, path)
    except OSError as error:
        raise UserError(explain(path, error)) from error
    finally:
        shutil.rmtree(own, ignore_errors=True)


@contextlib.contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """A new folder beside `path`, removed after the block; what killed processes left beside it is removed before.

    Raises OSError where it cannot be made.
    """
    remove_abandoned(path.parent)
    folder = path.parent / _temporary_name(path)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_OPEN_FILES = re.compile(r"/dev(/fd)?|/proc/.+/fd")
"""Folders whose files a process has open, such as /dev/stdout."""


def is_stream(path: Path) -> bool:
    """Whether a path is a device, a pipe, a socket, or an open file such as /dev/stdout: bytes go into it, it stays."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    special = not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return special or _OPEN_FILES.fullmatch(os.path.realpath(path.parent)) is not None


def _opened(path: Path) -> BinaryIO:
    """A stream opened to write; a file that this process has open is continued where it is."""
    link = path.readlink() if path.is_symlink() else path
    for place in (path, link):
        if place.name.isdigit() and os.path.realpath(place.parent) == f"/proc/{os.getpid()}/fd":
            if sys.stdout is not None:
                sys.stdout.flush()
            return os.fdopen(os.dup(int(place.name)), "wb", buffering=0)
    return path.open("wb", buffering=0)


def _replace(new: Path, path: Path) -> None:
    """Give a file the place of another; Windows refuses while a program has that open, so it is tried for a second."""
    for _ in range(20 if os.name == "nt" else 0):
        try:
            new.replace(path)
            return
        except PermissionError:
            time.sleep(0.05)
    new.replace(path)


def _temporary_name(path: Path) -> str:
    """The name of a folder beside a path, by which `remove_abandoned` knows the process that made it."""
    return f".{path.name}.{os.getpid()}-{_HOST}{secrets.token_hex(4)}.tmp"


_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:4]
"""Of this machine: others may write into the same folder, and their processes cannot be looked up here."""

_ABANDONED = re.compile(r"\..+\.(\d+)-([0-9a-f]{4})[0-9a-f]{8}\.tmp")


def remove_abandoned(folder: Path) -> None:
    """Remove what `replacing` and `temporary_folder` left in a folder in processes that no longer run."""
    for path in folder.glob(".*.tmp"):
        made_by = _ABANDONED.fullmatch(path.name)
        if made_by and not _may_run(int(made_by[1]), path, made_by[2] == _HOST):
            shutil.rmtree(path, ignore_errors=True)


@functools.lru_cache(maxsize=256)
def _tidy(folder: Path) -> None:
    """As `remove_abandoned`, once per folder and process."""
    remove_abandoned(folder)


def _may_run(process: int, path: Path, here: bool) -> bool:
    """Whether a process may still run that made a path: where processes cannot be looked up, within a day."""
    try:
        if os.name != "posix" or not here:
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
        return expanded(own)
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


def require_writable(path: Path) -> None:
    """Raise UserError where nothing can be written at `path`, before long work for it; its folders may be missing."""
    path = expanded(path).absolute()
    found = next((one for one in (path, *path.parents) if os.path.exists(one)), path.parent)  # noqa: PTH110 - the same
    if found == path and not is_stream(path) and not path.is_dir():
        found = path.parent  # in which a new file takes its place
    stream = is_stream(found) and found == path
    number = 0 if os.access(found, os.W_OK if stream else os.W_OK | os.X_OK) else errno.EACCES
    if not stream and not found.is_dir():
        number = errno.ENOTDIR
    if number:
        raise UserError(explain(path, OSError(number, os.strerror(number))))


def explain(path: Path, error: OSError) -> str:
    """The message for a user whose file could not be written."""
    if error.errno == errno.ENOENT and not path.parent.is_dir():
        return f"{path}: its folder has been removed; nothing more is written there"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        again = "continue with --resume" if (path.parent / "recipe.toml").is_file() else "give the command again"
        return f"{path}: the disk is full; the previous file, if any, is untouched; free some space and {again}"
    return (
        f"{path}: cannot be written ({error.strerror}); choose another folder, with --out or, of the cache, with the"
        " variable ELMAN_CACHE"
    )
