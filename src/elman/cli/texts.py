"""The texts that commands read, from files or standard input, and text of any bytes on standard output."""

import io
import sys
from pathlib import Path

from elman.config.text import TextOptions
from elman.data.text.utf8 import MARK, decode, read_bytes
from elman.errors import UserError


def write_any_text() -> None:
    """Let standard output take text of any bytes: lone surrogates become the bytes they stand for (PEP 383)."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")


def read_lines(name: str, text: TextOptions | None = None) -> list[str]:
    """The lines of a text, `-` being standard input; `text` determines how it is decoded.

    Raises UserError where it cannot be read, is empty, or is not UTF-8 although its bytes are not the tokens.
    """
    found = read_text(name, text)
    if not found.strip():
        what = "only blank lines" if found else "the file is empty"
        raise UserError(f"{shown_name(name)}: {what}; give a text to score")
    return list(io.StringIO(found, newline="\n"))


def read_text(name: str, text: TextOptions | None = None) -> str:
    """As `read_lines`, in one string, which may be empty."""
    advice = "give a text file, or - for standard input"
    data = sys.stdin.buffer.read() if name == "-" else read_bytes(Path(name), advice)
    any_bytes = text is not None and text.tokenisation == "bytes"
    found = data.decode(errors="surrogateescape") if any_bytes else decode(data, shown_name(name))
    return found if text is not None and text.eos == "exact" else found.removeprefix(MARK)


def shown_name(name: str) -> str:
    """The name of a file, or `standard input`."""
    return "standard input" if name == "-" else name
