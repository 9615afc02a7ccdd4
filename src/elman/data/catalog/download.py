"""Downloads: resumed when interrupted, verified, and given their name only when complete."""

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from elman.errors import UserError, first_line
from elman.files import sha256_file
from elman.jobs.locks import waiting_for

FAILURES = (OSError, http.client.HTTPException, ValueError)
"""What is raised where an address is wrong, does not answer, or answers what is not HTTP."""

_BLOCK = 1 << 16

Progress = Callable[[str, int, int], None]


def download(
    urls: tuple[str, ...],
    path: Path,
    *,
    sha256: str | None = None,
    size: int | None = None,
    progress: Progress | None = None,
    timeout: float = 30.0,
) -> str:
    """Fetch a file from the first of its addresses that answers; returns its SHA-256.

    A file that is there already is kept, unless it has another digest than `sha256`. One process at a time fetches a
    file; another one waits, and takes that. Until the file is complete it is kept as `path` with `.part` added, and a
    second call resumes it. `progress` receives the file's name, the bytes so far and all bytes (0 if that is not
    known). An address that is silent for `timeout` seconds is given up.

    Raises UserError where no address gave the whole file, it has not `size` bytes, its digest is not `sha256`, or the
    folder cannot be written.
    """
    with waiting_for(path):
        found = sha256_file(path) if path.is_file() else None
        if found is not None and sha256 in (None, found):
            return found
        failures, part = [], path.with_name(f"{path.name}.part")
        for url in urls:
            try:
                _fetch(url, part, size, progress, timeout)
            except FAILURES as error:
                failures.append(f"{url} ({reason_of(error)})")
                continue
            found = sha256_file(part)
            if sha256 is not None and found != sha256:
                part.unlink(missing_ok=True)
                failures.append(f"{url} (SHA-256 {found} instead of {sha256})")
                continue
            part.replace(path)
            return found
        raise UserError(
            f"could not download {'; '.join(failures)}; try again when there is a network (what has arrived is "
            f"kept), or fetch the file by hand and put it at {path}"
        )


def _fetch(url: str, part: Path, size: int | None, progress: Progress | None, timeout: float) -> None:
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not done:
            raise
        part.unlink()
        _fetch(url, part, size, progress, timeout)
        return
    with response:
        if not (response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {done}-")):
            done = 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length else 0
        if size is not None and total not in (0, size):
            part.unlink(missing_ok=True)
            raise ConnectionError(f"{total} bytes instead of {size}")
        with part.open("ab" if done else "wb") as file:
            while block := response.read(_BLOCK):
                file.write(block)
                done += len(block)
                if size is not None and done > size:
                    break
                if progress is not None:
                    progress(f"downloading {part.stem}", done, total)
    if size is not None and done > size:
        part.unlink()
        raise ConnectionError(f"more than {size} bytes")
    if (total or done) != done or (size or done) != done:
        raise ConnectionError(f"broken off after {done} of {total or size} bytes")


def require_address(url: str, where: str) -> None:
    """Raise UserError where an address is of another kind than https, http or file."""
    try:
        scheme = urlsplit(url).scheme
    except ValueError as error:
        raise UserError(f"{where}: {url} is not an address ({error})") from None
    if scheme not in ("https", "http", "file"):
        raise UserError(f"{where}: {url} cannot be fetched; use https:, http: or file:")


def reason_of(error: Exception) -> str:
    """Why an address did not answer, in a few words."""
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, str):
        return cause
    return cause.strerror if isinstance(cause, OSError) and cause.strerror else first_line(cause)
