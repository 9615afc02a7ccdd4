"""The encoding of texts that are not UTF-8: stated by a byte order mark, or by who reads them, and never guessed.

A byte order mark states UTF-16 or UTF-32. Another text that is not UTF-8 is decoded as `--encoding` says; without it
the text is refused, and the message shows how a telling line reads in the likeliest encodings, in the order of the
detector `chardet`, so that a person sees which one is right.
"""

import codecs
import os
import re
from collections.abc import Callable, Iterable, Iterator

from elman.errors import UserError, counted, notice

Blocks = Callable[[], Iterable[bytes]]
"""A text in blocks of bytes, as often as it is asked for."""

STANDARD_INPUT = "standard input"

OPTION, VARIABLE = "--encoding", "ELMAN_ENCODING"
"""The option that states the encoding of files that are not UTF-8, and the variable that keeps it for processes."""

STATED = f"{OPTION} states"

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before the mark of UTF-16, which it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SHOWN, _WIDE, _BEFORE = 3, 32, 8
"""Encodings that a message shows, the characters of each, and of these the ones before the first that differs."""

_SAMPLE = 1 << 16
_SHIFTS = re.compile(rb"\x1b\$|~\{[!-~]{2}")
"""What an ASCII text has that stands for other letters: escapes of ISO-2022, shifts of HZ."""

_CONTROLS = bytes({*range(9), *range(14, 32)} - {0x1B})
_MISREAD = re.compile(rb"\x00|\xc2[\x80-\x9f]")


def choose(name: str) -> None:
    """Read files that are not UTF-8 in this encoding from now on; raises UserError where there is none of the name."""
    try:
        found = codecs.lookup(name)
    except LookupError:
        found = None
    if found is None or not found._is_text_encoding:
        raise UserError(
            f"{OPTION} {name}: no such encoding; give a name of Python's, such as cp1251, euc_jp or mac_roman"
        )
    os.environ[VARIABLE] = found.name


def chosen(blocks: Blocks) -> str | None:
    """The encoding in which a text is read since it was chosen and the text needs one; None for UTF-8."""
    name = os.environ.get(VARIABLE)
    return name if name and any(needs_encoding(data) for data in _joined(blocks)) else None


def encoding_of(head: bytes) -> str:
    """In which encoding the beginning of a text is read, which may end within a character."""
    name = os.environ.get(VARIABLE)
    return marked(head) or (name if name and needs_encoding(head, whole=False) else None) or "utf-8-sig"


def needs_encoding(data: bytes, *, whole: bool = True) -> bool:
    """Whether bytes are certainly no UTF-8: they break its rules, have many control characters, or are ASCII that shifts."""
    return _is_wide(data) or _shifted(data) is not None or not _is_utf8(data, whole=whole)


def marked(head: bytes) -> str | None:
    """The encoding whose byte order mark a text begins with, UTF-16 or UTF-32; None where there is none."""
    return next((codec for mark, codec in _MARKS.items() if head.startswith(mark)), None)


def unread(head: bytes) -> str | None:
    """Why the beginning of a text that may be valid UTF-8 is certainly something else, in words; None: it is not."""
    if _is_wide(head):
        return "not UTF-8 (it has many control characters, as UTF-16 and UTF-32)"
    codec = _shifted(head)
    return None if codec is None else f"not UTF-8 but {codec}, by its escapes"


def decoded(blocks: Blocks, codec: str, name: str, stated: str = "its byte order mark states") -> Iterator[str]:
    """A text whose encoding is `stated`, without a byte order mark; a notice names the encoding.

    Raises UserError where the text breaks the rules of that encoding.
    """
    decoder, done = codecs.getincrementaldecoder(codec)(), 0
    shown = codec.replace("_", "-").upper()
    try:
        for block in blocks():
            yield decoder.decode(block)
            done += len(block)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{name}: read as {shown}, which {stated}, but it breaks its rules near byte {done + error.start}"
            f" ({error.reason}); give another {OPTION}, or save the file again as UTF-8"
        ) from None
    notice(f"{name}: read as {shown}, which {stated}")


def refusal(blocks: Blocks, name: str, reason: str) -> UserError:
    """The error for a text that is not UTF-8: the reason, and how it reads in the likeliest encodings."""
    likely = candidates(blocks)[:_SHOWN]
    if not likely:
        return UserError(f"{name}: {reason}, nor in any encoding that is known here; give a text file in UTF-8")
    shown = telling(_sample(blocks), likely)
    options = "; ".join(f"{OPTION} {codec} reads “{text}”" for codec, text in zip(likely, shown, strict=True))
    return UserError(
        f"{name}: {reason}; {'choose what is right' if len(likely) > 1 else 'the likely encoding'}: {options}"
    )


def candidates(blocks: Blocks) -> list[str]:
    """The encodings, by Python's names, that decode a whole text, in the order of the detector.

    Of several that give the same text the first is kept.
    """
    from chardet import detect_all

    sample, found = _sample(blocks), dict[str, str]()
    for one in detect_all(sample):
        try:
            codec = codecs.lookup(one["encoding"] or "").name
        except LookupError:
            continue
        text = sample.decode(codec, "replace")
        if codec not in ("ascii", "utf-8") and text not in found and _decodes(blocks, codec):
            found[text] = codec
    return list(found.values())


def telling(sample: bytes, likely: list[str]) -> list[str]:
    """How the line in which some encodings differ most reads in each, from a little before the first difference."""
    texts = [sample.decode(codec, "replace").splitlines() for codec in likely]
    best, most = [lines[0].strip() if lines else "" for lines in texts], 0
    for lines in zip(*texts, strict=False):
        first, *others = lines
        differ = sum(one != first for one in others) * sum(ord(mark) > 127 for mark in first[: 4 * _WIDE])
        if not others:
            differ = sum(ord(mark) > 127 for mark in first[: 4 * _WIDE])
        if differ > most:
            best, most = list(lines), differ
    first, *others = best
    at = min(
        (
            place
            for other in others or [""]
            for place, pair in enumerate(zip(first, other, strict=False))
            if len({*pair}) > 1
        ),
        default=next((place for place, mark in enumerate(first) if ord(mark) > 127), 0),
    )
    begin = max(0, at - _BEFORE)
    return [line[begin : begin + _WIDE].strip() for line in best]


def _is_wide(data: bytes) -> bool:
    """Whether more than a tenth of the bytes are control characters, as in UTF-16 and UTF-32."""
    return len(data) >= 4 and len(data) - len(data.translate(None, _CONTROLS)) > len(data) // 10


def _is_utf8(data: bytes, *, whole: bool = True) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=whole)
    except UnicodeDecodeError:
        return False
    return True


def _shifted(data: bytes) -> str | None:
    """The encoding of an ASCII text with shifts, where the detector knows it and letters come of it."""
    if _SHIFTS.search(data) is None:
        return None
    from chardet import detect

    name = detect(data[:_SAMPLE])["encoding"] or ""
    return name if name.lower().startswith(("iso-2022", "iso2022", "hz")) else None


def _joined(blocks: Blocks) -> Iterator[bytes]:
    """Blocks that end at line feeds, so that no character is cut; what is wide comes as it is."""
    rest = b""
    for block in blocks():
        if _is_wide(block):
            yield block
            return
        head, end, rest = (rest + block).rpartition(b"\n")
        yield head + end
    yield rest


def _sample(blocks: Blocks) -> bytes:
    """The beginning of a text, or of a longer one the first lines with bytes beyond ASCII or with shifts."""
    found, head = bytearray(), b""
    for lines in _joined(blocks):
        head = head or lines[:_SAMPLE]
        if _is_wide(lines):
            return lines[: _SAMPLE - _SAMPLE % 4]
        for line in lines.splitlines(keepends=True):
            if not line.isascii() or _SHIFTS.search(line):
                found += line[:_SAMPLE]
        if len(found) > _SAMPLE:
            break
    return bytes(found[: 2 * _SAMPLE]) or head


def _decodes(blocks: Blocks, codec: str) -> bool:
    """Whether a whole text can be decoded."""
    decoder = codecs.getincrementaldecoder(codec)()
    try:
        for block in blocks():
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def inspect(blocks: Blocks, name: str) -> None:
    """A notice about NUL and the control characters U+0080 to U+009F of a text in UTF-8, which was decoded wrongly.

    Raises UserError where it is certainly no UTF-8, although it follows its rules (`unread`).
    """
    total, lines, first, example, last, converted = 0, 1, 0, b"", b"", False
    for block in blocks():
        data = last + block
        last = data[-1:] if data.endswith(b"\xc2") else b""
        data = data.removesuffix(b"\xc2") if last else data
        if (reason := unread(data)) is not None:
            raise refusal(blocks, name, reason)
        if b"\xc2" in data or b"\0" in data:
            for match in _MISREAD.finditer(data):
                if not total:
                    first, example = lines + data.count(b"\n", 0, match.start()), match[0]
                total, converted = total + 1, converted or match[0] != b"\0"
        lines += data.count(b"\n")
    if not total or not _decodes(blocks, "utf-8"):
        return  # in other encodings these bytes are parts of characters
    cause = "it is not text, or was UTF-16 once; look at the original file"
    if converted:
        cause = (
            "Windows-1252 was probably read as Latin-1 when the text was converted; convert the original with"
            " iconv -f CP1252 -t UTF-8"
        )
    shown = f"U+{ord(example.decode()):04X}"
    notice(f"{name}: {counted(total, 'control character')}, the first in line {first:,} ({shown}): {cause}")
