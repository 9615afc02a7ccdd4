r"""Lines: a line feed, a carriage return with one, and a lone carriage return end a line; nothing else does.

`str.splitlines` also cuts at U+2028, U+2029, U+0085, form feeds, vertical tabs and the separators U+001C to U+001E,
which stand within lines of real texts and tables.
"""

import io
import re
from collections.abc import Iterable, Iterator

BLANKS = " \t\n\r\f\v"  # white space of ASCII, which separates the fields of a line
_LONE = re.compile(rb"\r(?!\n)")
_FIELD = re.compile(f"[^{BLANKS}]+")
_OTHER_SPACE = re.compile("[\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")


def lines_of(text: str) -> list[str]:
    r"""The lines of a text without their breaks.

    >>> lines_of("a\r\nb\rc\u2028d\n\n")
    ['a', 'b', 'c\u2028d', '']
    """
    return [line.removesuffix("\n") for line in with_breaks(text)]


def fields(text: str) -> list[str]:
    r"""What stands between blanks of ASCII, as formats of programs have it: a no-break space is a part of a field.

    >>> fields(" 10\u00a0000 francs\t1 ")
    ['10\xa0000', 'francs', '1']
    """
    return _FIELD.findall(text) if _OTHER_SPACE.search(text) else text.split()


def with_breaks(text: str, *, exact: bool = False) -> list[str]:
    r"""The lines of a text, each with a line feed for its break, if it has one.

    `exact`: only line feeds end lines, and a carriage return is a character like any other.
    """
    return list(io.StringIO(text, newline="\n" if exact else None))


def with_line_feeds(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks of a text in UTF-8 in which lone carriage returns are line feeds; every other byte is as it was."""
    held = b""
    for block in blocks:
        data = held + block if held else block
        held = b"\r" if data.endswith(b"\r") else b""  # what follows decides
        data = data.removesuffix(b"\r")
        if data.count(b"\r") > data.count(b"\r\n"):
            data = _LONE.sub(b"\n", data)
        if data:
            yield data
    if held:
        yield b"\n"
