"""The encoding of texts that are not UTF-8: known by a mark, or proposed with the command that converts the file.

A byte order mark states UTF-16 or UTF-32, and such a text is decoded. Everything else that is not UTF-8 is refused;
what `charset-normalizer` finds in the lines that are not ASCII is proposed, if it decodes the whole text.
"""

import codecs
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator

from elman.errors import UserError, counted, notice

Blocks = Callable[[], Iterable[bytes]]
"""A text in blocks of bytes, as often as it is asked for."""

STANDARD_INPUT = "standard input"

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before the mark of UTF-16, which it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CANDIDATES = {
    **{"cp932": "CP932 (Shift_JIS)", "euc_jp": "EUC-JP", "gb18030": "GB18030", "big5": "BIG5"},
    **{"cp949": "CP949 (EUC-KR)", "cp1252": "CP1252 (Windows-1252)", "cp1250": "CP1250 (Windows-1250)"},
    **{"cp1251": "CP1251 (Windows-1251)", "koi8_r": "KOI8-R", "mac_roman": "MACINTOSH (Mac OS Roman)"},
    **{"cp850": "CP850", "iso8859_2": "ISO-8859-2", "koi8_u": "KOI8-U", "cp866": "CP866"},
    **{f"cp{page}": f"CP{page} (Windows-{page})" for page in range(1253, 1259)},
    **{"cp874": "CP874 (Thai)", "cp437": "CP437", "utf_16_le": "UTF-16LE", "utf_16_be": "UTF-16BE"},
}
"""The encodings that are looked for, by the names of Python, common ones first: the name of iconv and a usual one."""

_NAMED = 4
"""Encodings that a message names at most."""

_FEW = 10
"""Fewer characters beyond ASCII than this are reported: they hardly distinguish encodings."""

_UNPACKED_BY = {".gz": "gzip", ".zst": "zstd"}
_SAMPLE = 1 << 15
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_MISREAD = re.compile(rb"\x00|\xc2[\x80-\x9f]")


def marked(head: bytes) -> str | None:
    """The encoding whose byte order mark a text begins with, UTF-16 or UTF-32; None where there is none."""
    return next((codec for mark, codec in _MARKS.items() if head.startswith(mark)), None)


def unmarked(head: bytes) -> str | None:
    """UTF-16 without a mark, known by NULs at every second byte of the beginning; None where it is something else."""
    half = len(head) // 2
    even, odd = (head[place : 2 * half : 2].count(0) for place in (0, 1))
    if half >= 2 and max(even, odd) > 0.4 * half and min(even, odd) < 0.05 * half:
        return "utf_16_le" if odd > even else "utf_16_be"
    return None


def decoded(blocks: Blocks, codec: str, name: str) -> Iterator[str]:
    """A text whose mark states its encoding, without the mark; a notice names the encoding.

    Raises UserError where the text breaks the rules of that encoding.
    """
    decoder, done = codecs.getincrementaldecoder(codec)(), 0
    try:
        for block in blocks():
            yield decoder.decode(block)
            done += len(block)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{name}: begins with the mark of {codec.upper()}, but is damaged near byte {done + error.start}"
            f" ({error.reason}); save the file again, as UTF-8"
        ) from None
    notice(f"{name}: read as {codec.upper()}, which its byte order mark states")


def refusal(blocks: Blocks, name: str, reason: str) -> UserError:
    """The error for a text that is not UTF-8: the reason, the likely encodings, and the command that converts it."""
    sample = _sample(blocks)
    likely = propose(blocks, sample)
    if not likely:
        return UserError(f"{name}: {reason}, nor in any encoding that is known here; give a text file in UTF-8")
    *others, last = (_CANDIDATES[codec] for codec in likely)
    looks = f"it looks like {', '.join(others)} or {last}" if others else f"it looks like {last}"
    beyond = sum(ord(character) > 127 for character in sample.decode(likely[0], "ignore"))
    few = f", judged by only {counted(beyond, 'character')} beyond ASCII" if 0 < beyond < _FEW else ""
    convert = f"iconv -f {_CANDIDATES[likely[0]].partition(' ')[0]} -t UTF-8"
    if name != STANDARD_INPUT:
        plain, end = os.path.splitext(name)  # noqa: PTH122 - messages have names, not paths
        unpack, file = _UNPACKED_BY.get(end), shlex.quote(name)
        target = shlex.quote(f"{plain if unpack else name}.utf8")
        convert = f"{unpack} -dc {file} | {convert} > {target}" if unpack else f"{convert} {file} > {target}"
    first = "if it is the first, " if others else ""
    return UserError(f"{name}: {reason}; {looks}{few}; {first}convert it with: {convert}")


def propose(blocks: Blocks, sample: bytes) -> list[str]:
    """The most likely encodings of those that decode the whole text without control characters, the likeliest first.

    They are ordered by the detector's measures, disorder and the resemblance to a language, in tenths, then common ones
    first; of several that give the same characters the first is kept.
    """
    from charset_normalizer import from_bytes

    if (plain := unmarked(next(iter(blocks()), b""))) is not None:
        return [plain]
    order = list(_CANDIDATES)
    ranked = sorted(
        (int(10 * match.chaos), -round(match.coherence, 1), order.index(codec), codec)
        for match in from_bytes(sample, cp_isolation=order)
        for codec in match.could_be_from_charset
        if codec in _CANDIDATES
    )
    found = dict[str, str]()
    for *_, codec in ranked:
        text = sample.decode(codec, "replace")
        if len(found) < _NAMED and text not in found and _decodes(blocks, codec):
            found[text] = codec
    return list(found.values())


def _sample(blocks: Blocks) -> bytes:
    """The first lines with bytes beyond ASCII; line feeds are no part of a character in most encodings."""
    sample, rest = bytearray(), b""
    for block in blocks():
        *lines, rest = (rest + block).split(b"\n")
        for line in (*lines, *([rest] if len(rest) > _SAMPLE else [])):
            if not line.isascii() and len(sample) <= _SAMPLE:
                sample += line[:_SAMPLE] + b"\n"
        rest = b"" if len(rest) > _SAMPLE else rest
        if len(sample) > _SAMPLE:
            break
    return bytes(sample) if sample and rest.isascii() else bytes(sample + rest[:_SAMPLE])


def _decodes(blocks: Blocks, codec: str, *, controls: bool = False) -> bool:
    """Whether a text can be decoded, and, unless `controls`, has no control characters then."""
    decoder = codecs.getincrementaldecoder(codec)()
    try:
        texts = (decoder.decode(block) for block in blocks())
        unusual = any(_CONTROL.search(text) and not controls for text in texts)
        return not unusual and not decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False


def report_misread(blocks: Blocks, name: str) -> None:
    """A notice about NUL and the control characters U+0080 to U+009F of a text in UTF-8, which was decoded wrongly."""
    total, lines, first, example, last, converted = 0, 1, 0, b"", b"", False
    for block in blocks():
        data = last + block
        last = data[-1:] if data.endswith(b"\xc2") else b""
        data = data.removesuffix(b"\xc2") if last else data
        if b"\xc2" in data or b"\0" in data:
            for match in _MISREAD.finditer(data):
                if not total:
                    first, example = lines + data.count(b"\n", 0, match.start()), match[0]
                total, converted = total + 1, converted or match[0] != b"\0"
        lines += data.count(b"\n")
    if not total or not _decodes(blocks, "utf-8", controls=True):
        return  # in other encodings these bytes are parts of characters
    cause = "it is not text, or was UTF-16 once; look at the original file"
    if converted:
        cause = (
            "Windows-1252 was probably read as Latin-1 when the text was converted; convert the original with"
            " iconv -f CP1252 -t UTF-8"
        )
    shown = f"U+{ord(example.decode()):04X}"
    notice(f"{name}: {counted(total, 'control character')}, the first in line {first:,} ({shown}): {cause}")
