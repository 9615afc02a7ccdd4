"""Text from files and standard input, and text on standard output."""

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from elman.errors import UserError

if TYPE_CHECKING:
    from elman.config.text import TextOptions


def write_any_text() -> None:
    """Let standard output take text of any bytes: lone surrogates become the bytes they stand for (PEP 383)."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")


def read_lines(name: str, text: "TextOptions | None" = None) -> list[str]:
    """The lines of a text, `-` being standard input; `text` says how it is decoded.

    Raises:
        UserError: it cannot be read, is empty, or is not UTF-8 where it is not read as bytes.
    """
    found = read_text(name, text)
    if not found.strip():
        what = "only blank lines" if found else "the file is empty"
        raise UserError(f"{shown_name(name)}: {what}; give a text to score")
    return list(io.StringIO(found, newline="\n"))


def read_text(name: str, text: "TextOptions | None" = None) -> str:
    """As `read_lines`, in one string, which may be empty.

    Raises:
        UserError: it cannot be read, or is not UTF-8 where it is not read as bytes.
    """
    exact = text is not None and text.eos == "exact"
    errors = "surrogateescape" if text is not None and text.tokenisation == "bytes" else "strict"
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        reason = error.strerror
        raise UserError(f"{name}: cannot be read ({reason}); give a text file, or - for standard input") from None
    try:
        return data.decode("utf-8" if exact else "utf-8-sig", errors)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{shown_name(name)}: not UTF-8 at byte {error.start} (0x{data[error.start]:02x}); convert it first, for"
            " example with: iconv -f LATIN1 -t UTF-8"
        ) from None


def shown_name(name: str) -> str:
    """The name of a file, or `standard input`."""
    return "standard input" if name == "-" else name
