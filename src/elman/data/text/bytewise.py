"""Bytes as tokens: ASCII bytes are their characters, all others are written `<0xE3>`.

In text that Python holds, a byte that is not UTF-8 is a lone surrogate (PEP 383), so that any bytes can be read as
text and given back.
"""

import codecs
import re

BYTES = tuple(chr(value) if value < 0x80 else f"<0x{value:02X}>" for value in range(256))
"""The token of every byte."""

_NAMED = re.compile(r"<0x([0-9A-F]{2})>")


def to_bytes(text: str) -> bytes:
    """Text as UTF-8, lone surrogates as the bytes that they stand for; other surrogates as they would be written."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def from_bytes(data: bytes) -> str:
    """The inverse of `to_bytes`."""
    return data.decode("utf-8", "surrogateescape")


def readable(text: str) -> str:
    """Text in which what is not UTF-8 is shown as U+FFFD."""
    return to_bytes(text).decode("utf-8", "replace")


def spell(text: str) -> list[str]:
    """The tokens of the bytes of a text.

    >>> spell("aé")
    ['a', '<0xC3>', '<0xA9>']
    """
    return [BYTES[value] for value in to_bytes(text)]


def named_byte(token: str) -> bytes | None:
    """The byte that a token such as `<0xE3>` stands for; None for another token."""
    match = _NAMED.fullmatch(token)
    return None if match is None else bytes([int(match[1], 16)])


class Decoder:
    """Bytes to text as they come; characters appear when they are complete."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def add(self, data: bytes) -> str:
        """The text that these bytes complete."""
        return self._decoder.decode(data)

    def end(self) -> str:
        """What is left over."""
        return self._decoder.decode(b"", final=True)
