"""The encoding of texts: UTF-8, or stated by a mark, or the one that `--encoding` names; others are refused and shown.

A byte order mark states UTF-16 or UTF-32. A text that is not UTF-8 is read as the option says; without a mark UTF-16
and UTF-32 are known by NULs, ISO-2022, HZ and UTF-7, which are ASCII, by escapes. Without the option it is refused
(`guessing`).
"""

import codecs
import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator

from elman.errors import ENCODING, UserError, notice

Blocks = Callable[[], Iterable[bytes]]  # a text in blocks of bytes, as often as it is asked for
STANDARD_INPUT = "standard input"

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before the mark of UTF-16, which it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
MISREAD = re.compile(rb"\x00|\xc2[\x80-\x9f]")


def marked(head: bytes) -> str | None:
    """The encoding whose byte order mark a text begins with, UTF-16 or UTF-32; None where there is none."""
    return next((codec for mark, codec in _MARKS.items() if head.startswith(mark)), None)


def lookup(name: str) -> str:
    """The name that Python has for an encoding of texts; raises UserError where it has none."""
    try:
        found = codecs.lookup(name).name
        "".encode(found)
    except (LookupError, ValueError):
        raise UserError(
            f"--encoding {name}: no encoding of texts has this name; give one such as cp1252, koi8-r or big5"
        ) from None
    if found in _MARKS.values():
        raise UserError(f"--encoding {name}: say in which order its bytes are: {found}-le or {found}-be")
    return found


def given() -> str | None:
    """The encoding of texts that are not UTF-8, as the user gave it; raises UserError where there is none such."""
    return lookup(name) if (name := os.environ.get(ENCODING)) else None


@contextlib.contextmanager
def remembered(name: str | None) -> Iterator[None]:
    """Texts are read in an encoding, as a run's data were, unless the user gives one; None: as they are."""
    if name is None or ENCODING in os.environ:
        yield
        return
    os.environ[ENCODING] = lookup(name)
    try:
        yield
    finally:
        del os.environ[ENCODING]


def of_head(head: bytes) -> str:
    """How the beginning of a text is decoded where it is only looked at."""
    if (codec := marked(head)) or (codec := given()) is None:
        return codec or "utf-8-sig"
    whole = head[: head.rfind(b"\n") + 1] or head
    plain, traces, _ = _scanned(lambda: [whole])
    if plain and traces:
        from elman.data.text.guessing import hidden

        plain = not hidden(lambda: [whole])
    return "utf-8-sig" if plain else codec


def foreign(blocks: Blocks, name: str) -> Iterator[str] | None:
    """A text that is not UTF-8, decoded and without its mark, or one whose end is cut; None where it is UTF-8.

    A notice names the encoding; others report an incomplete last character, which is left out, and control characters
    of a text that was decoded wrongly earlier.

    Raises UserError where it has another encoding than UTF-8 and none was given, or not the one that was given.
    """
    if codec := marked(next(iter(blocks()), b"")):
        damaged = f"begins with the mark of {codec.upper()}, but is damaged"
        return _decoded(blocks, codec, name, "its byte order mark states", damaged, "save the file again, as UTF-8")
    plain, traces, misread = _scanned(blocks)
    if plain and not traces and not misread:
        return None
    from elman.data.text import guessing

    hidden = guessing.hidden(blocks) if traces else []
    if plain and not hidden:
        if traces and any(b"\x1b$)A" in block or b"\x1b$)G" in block for block in blocks()):
            raise UserError(
                f"{name}: this is ISO-2022-CN, which is not read here; convert it: iconv -f ISO-2022-CN-EXT -t UTF-8"
            )
        if misread:
            guessing.report_misread(blocks, name)
        return None
    if codec := given():
        wrong = f"is not {codec.upper()}, which --encoding names: it is wrong"
        return _decoded(blocks, codec, name, "--encoding says", wrong, "without the option likely ones are shown")
    if plain:
        raise guessing.refusal_of_hidden(blocks, name, hidden)
    wrong_lines, good, _ = guessing.not_utf8(blocks)
    _, at, line, reason = wrong_lines[0]
    if good and reason == "unexpected end of data" and not line.endswith(b"\n"):
        notice(f"{name}: ends within a character, at byte {at}; what there is of it was left out")
        return map(codecs.getincrementaldecoder("utf-8-sig")().decode, blocks())
    raise guessing.refusal(blocks, name)


def _decoded(blocks: Blocks, codec: str, name: str, why: str, wrong: str, cure: str) -> Iterator[str]:
    decoder, done = codecs.getincrementaldecoder(codec)(), 0
    try:
        for block in blocks():
            yield decoder.decode(block)
            done += len(block)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise UserError(f"{name}: {wrong} near byte {done + error.start} ({error.reason}); {cure}") from None
    notice(f"{name}: read as {codec.upper()}, which {why}")


def _scanned(blocks: Blocks) -> tuple[bool, bool, bool]:
    """Whether a text is UTF-8, may be of a hidden encoding, and may have been misread, by reading it once."""
    decoder, traces, misread = codecs.getincrementaldecoder("utf-8")(), False, False
    ascii_only, shifted = True, False
    try:
        for block in blocks():
            ascii_only = decoder.decode(block).isascii() and ascii_only
            shifted = shifted or (ascii_only and b"+" in block)
            traces = traces or any(trace in block for trace in (b"\0", b"\x1b", b"~{"))
            misread = misread or block.endswith(b"\xc2") or MISREAD.search(block) is not None
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False, False, False
    return True, traces or (ascii_only and shifted), misread
