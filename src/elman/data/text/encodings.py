"""The encoding of texts that are not UTF-8: known by a mark, or proposed with the command that converts the file.

A byte order mark states UTF-16 or UTF-32, and such a text is decoded. Everything else that is not UTF-8 is refused:
what `charset-normalizer` finds in the lines that are not ASCII is proposed, if it decodes the whole text.
"""

import codecs
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from elman.data.text.files import BLOCK, Files
from elman.errors import UserError, counted, notice

Blocks = Callable[[], Iterable[bytes]]
"""A text in blocks of bytes, as often as it is asked for."""

STANDARD_INPUT = "standard input"

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before that of UTF-16, which it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class _Encoding(NamedTuple):
    iconv: str
    known_as: str = ""
    handicap: float = 0.1  # rarer encodings have to fit better


_CANDIDATES = {
    "utf_16_le": _Encoding("UTF-16LE", handicap=0),
    "utf_16_be": _Encoding("UTF-16BE", handicap=0),
    "cp932": _Encoding("CP932", "Shift_JIS", 0),
    "euc_jp": _Encoding("EUC-JP", handicap=0),
    "gb18030": _Encoding("GB18030", handicap=0),
    "big5": _Encoding("BIG5", handicap=0),
    "cp949": _Encoding("CP949", "EUC-KR", 0),
    "cp1252": _Encoding("CP1252", "Windows-1252", 0),
    "cp1250": _Encoding("CP1250", "Windows-1250", 0.05),
    "cp1251": _Encoding("CP1251", "Windows-1251", 0.05),
    "koi8_r": _Encoding("KOI8-R", handicap=0.05),
    "mac_roman": _Encoding("MACINTOSH", "Mac OS Roman", 0.05),
    "cp850": _Encoding("CP850", handicap=0.05),
    "iso8859_2": _Encoding("ISO-8859-2", handicap=0.08),
    "koi8_u": _Encoding("KOI8-U"),
    "cp866": _Encoding("CP866"),
    "cp1253": _Encoding("CP1253", "Windows-1253"),
    "cp1254": _Encoding("CP1254", "Windows-1254"),
    "cp1255": _Encoding("CP1255", "Windows-1255"),
    "cp1256": _Encoding("CP1256", "Windows-1256"),
    "cp1257": _Encoding("CP1257", "Windows-1257"),
    "cp1258": _Encoding("CP1258", "Windows-1258"),
    "cp874": _Encoding("CP874", "Thai"),
    "cp437": _Encoding("CP437"),
}
"""The encodings that are looked for, by the names of Python."""

_COMMON = {
    "cp932": ("euc_jp", 0xCF),
    "euc_jp": ("euc_jp", 0xCF),
    "gb18030": ("gb2312", 0xD7),
    "big5": ("big5", 0xC6),
    "cp949": ("euc_kr", 0xC8),
}
"""Encodings of two bytes per character; in common use are the characters whose first byte is at most so in another."""

_PUNCTUATION = "\u2018\u2019\u201c\u201d\u2013\u2014\u2026\u00ab\u00bb\u00bf\u00a1\u20ac\u00a3\u00a7\u00b0\u2116\u00a0"
_KANA, _JAMO = range(0x3041, 0x3100), range(0x3131, 0x318F)

_LEAST_KANA = 0.1
_CLEAR = 0.05
"""How much better the best encoding has to fit than another, so that the other is not named."""

_FEW = 10
"""Fewer characters beyond ASCII than this are reported: they hardly distinguish encodings."""

_UNPACKED_BY = {".gz": "gzip", ".zst": "zstd"}
_SAMPLE = 1 << 15
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_MISREAD = re.compile(rb"\x00|\xc2[\x80-\x9f]")


class Proposal(NamedTuple):
    """An encoding that decodes a whole text: the name for iconv, as a reader knows it, and how it fits (1 is best).

    `characters` are those beyond ASCII by which it was judged.
    """

    iconv: str
    shown: str
    confidence: float
    characters: int
    other: str | None


def blocks_of(path: Path) -> Blocks:
    """The blocks of a file, unpacked where it is compressed."""
    return Files.of(path).blocks


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
    """The error for a text that is not UTF-8: the reason, the proposed encoding, and the command that converts it."""
    found = propose(blocks)
    if found is None:
        return UserError(f"{name}: {reason}, nor in any encoding that is known here; give a text file in UTF-8")
    other = f", or {found.other}" if found.other else ""
    few = ""
    if 0 < found.characters < _FEW:
        few = f", judged by only {counted(found.characters, 'character')} beyond ASCII"
    looks = f"it looks like {found.shown} with confidence {found.confidence:.2f}{other}{few}"
    return UserError(f"{name}: {reason}; {looks}; convert it with: {_conversion(found.iconv, name)}")


def _conversion(iconv: str, name: str) -> str:
    if name == STANDARD_INPUT:
        return f"iconv -f {iconv} -t UTF-8"
    plain, end = os.path.splitext(name)  # noqa: PTH122 - messages have names, not paths
    file, target = shlex.quote(name), shlex.quote(f"{plain if end in _UNPACKED_BY else name}.utf8")
    if unpack := _UNPACKED_BY.get(end):
        return f"{unpack} -dc {file} | iconv -f {iconv} -t UTF-8 > {target}"
    return f"iconv -f {iconv} -t UTF-8 {file} > {target}"


def propose(blocks: Blocks) -> Proposal | None:
    """The most plausible encoding of those that decode the whole text without control characters; None: there is none.

    The detector's measures, disorder and the resemblance to a language, are compared after a handicap on encodings that
    are rare and on characters that are not in common use; an encoding that fits nearly as well is named as the other
    possibility.
    """
    from charset_normalizer import from_bytes

    sample = _sample(blocks)
    detected = {
        codec: (match.chaos - 0.1 * match.coherence, 1 - match.chaos)
        for match in from_bytes(sample, cp_isolation=list(_CANDIDATES))
        for codec in match.could_be_from_charset
        if codec in _CANDIDATES
    }
    if (plain := unmarked(next(iter(blocks()), b""))) is not None:
        detected[plain] = (-1.0, 1.0)
    found = list[tuple[float, str, float, str]]()
    for codec in detected.keys() | _COMMON.keys():
        fit, confidence = detected.get(codec, (0.1, 0.9))
        text = sample.decode(codec, errors="replace")
        usual = _usual(text, codec)
        found.append((fit + _CANDIDATES[codec].handicap + 1 - usual, codec, confidence * usual, text))
    found.sort()
    fitting = (row for row in found if _decodes(blocks, row[1]))
    best = next(fitting, None)
    if best is None:
        return None
    other = next((row[1] for row in fitting if row[3] != best[3] and row[0] < best[0] + _CLEAR), None)
    judged_by = sum(ord(character) > 127 for character in best[3])
    return Proposal(_CANDIDATES[best[1]].iconv, _shown(best[1]), best[2], judged_by, other and _shown(other))


def _usual(text: str, codec: str) -> float:
    """The share of characters beyond ASCII that are in common use where they stand.

    Those of a script without cases are so if a smaller set has them; Japanese has kana among them, and nothing else
    has. Others are letters, but no capitals after small letters, and punctuation, but not within words.
    """
    places = [place for place, character in enumerate(text) if ord(character) > 127]
    if not places:
        return 1.0
    if codec in _COMMON:
        smaller, last = _COMMON[codec]
        usual = [_is_common(text[place], smaller, last) for place in places]
        kana = sum(ord(text[place]) in _KANA for place in places) / len(places)
        expected = kana > _LEAST_KANA if smaller == "euc_jp" else kana < _LEAST_KANA
        return sum(usual) / len(places) * (1.0 if expected else 0.5)
    return sum(_is_usual(text[place - 1 : place] or " ", text[place : place + 2]) for place in places) / len(places)


def _is_common(character: str, codec: str, last: int) -> bool:
    try:
        code = character.encode(codec)
    except UnicodeEncodeError:
        return False
    return len(code) == 2 and 0xA1 <= code[0] <= last and ord(character) not in _JAMO


def _is_usual(before: str, at: str) -> bool:
    """Whether the first character of `at` can stand between the one before it and the one after it."""
    character, after = at[0], at[1:] or " "
    if character.isalpha():
        return not (character.isupper() and before.islower())
    within = before.isalpha() and after.isalpha()
    return character in _PUNCTUATION and (not within or character in "\u2019\u2013\u2014")


def _shown(codec: str) -> str:
    iconv, known_as, _ = _CANDIDATES[codec]
    return f"{iconv} ({known_as})" if known_as else iconv


def _sample(blocks: Blocks) -> bytes:
    """The first lines with bytes beyond ASCII; line feeds are no part of a character in most encodings."""
    sample, rest = bytearray(), b""
    for block in blocks():
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            if not line.isascii():
                sample += line[:_SAMPLE] + b"\n"
                if len(sample) > _SAMPLE:
                    return bytes(sample)
        rest = b"" if len(rest) > BLOCK else rest
        if not sample and rest and not rest.isascii():
            sample += rest[:_SAMPLE]
    return bytes(sample + b"\n" + rest[:_SAMPLE]) if not rest.isascii() or not sample else bytes(sample)


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
    counts, lines, first = {"NUL": 0, "C1": 0}, 1, 0
    example, last = b"", b""
    for block in blocks():
        data = last + block
        last = data[-1:] if data.endswith(b"\xc2") else b""
        data = data.removesuffix(b"\xc2") if last else data
        if b"\xc2" in data or b"\0" in data:
            for match in _MISREAD.finditer(data):
                first, example = (first, example) if first else (lines + data.count(b"\n", 0, match.start()), match[0])
                counts["NUL" if match[0] == b"\0" else "C1"] += 1
        lines += data.count(b"\n")
    total = sum(counts.values())
    if not total or not _decodes(blocks, "utf-8", controls=True):
        return  # in other encodings these bytes are parts of characters
    shown = f"U+{ord(example.decode()):04X}"
    cause = "it is not text, or was UTF-16 once; look at the original file"
    if counts["C1"]:
        cause = (
            "Windows-1252 was probably read as Latin-1 when the text was converted; convert the original with"
            " iconv -f CP1252 -t UTF-8"
        )
    notice(f"{name}: {counted(total, 'control character')}, the first in line {first:,} ({shown}): {cause}")
