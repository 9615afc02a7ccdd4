"""Which encodings a text that is not UTF-8 may have.

A refusal shows a line of the text in each of the encodings that `chardet` finds likeliest, in its order.
"""

import codecs
import io
import itertools
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from elman.data.text.encodings import MISREAD, Blocks
from elman.data.text.files import Stream
from elman.errors import UserError, counted, notice, one_line

_HIDDEN = ("utf-16", "utf-32", "utf-7", "iso2022", "hz")  # how names of encodings begin whose bytes may be UTF-8 too
_SHOWN = 3  # encodings that a message shows at most
_FEW = 10  # fewer characters beyond ASCII than this are reported: they hardly distinguish encodings
_SAMPLE = 1 << 15
_CONTROLS = bytes({*range(1, 32), 127} - {*b"\t\n\r\x1b"})
"""Control characters beside letters: the detector takes what has one for no text."""
_C1 = re.compile("[\x80-\x9f]")
_SHIFTED = re.compile(rb"\+[A-Za-z0-9+/]")


def _lines(blocks: Blocks) -> Iterator[bytes]:
    return cast("Iterator[bytes]", io.BufferedReader(Stream(iter(blocks()))))


def not_utf8(blocks: Blocks) -> tuple[list[tuple[int, int, bytes, str]], int, set[str]]:
    """The lines that are not UTF-8: number, offset of the first wrong byte, line, reason.

    And how many that are have characters beyond ASCII, and these characters.
    """
    wrong, good, known, start = list[tuple[int, int, bytes, str]](), 0, set[str](), 0
    for number, line in enumerate(_lines(blocks), start=1):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            wrong.append((number, start + error.start, line, error.reason))
            text = line[: error.start].decode() if error.reason == "unexpected end of data" else ""
        if not text.isascii():
            good += 1
            known.update(text)
        start += len(line)
    return wrong, good, known


def refusal(blocks: Blocks, name: str, offset: int = 0) -> UserError:
    """The error for a text, from `offset` of a file on, that is not UTF-8: where, and the likely encodings.

    Where more lines beyond ASCII are UTF-8 than not, it names the others, and shows the first in the encodings that
    give the fewest characters which the rest does not have.
    """
    wrong, good, known = not_utf8(blocks)
    _, at, line, _ = wrong[0]
    value = next(
        ord(letter) - 0xDC00 for letter in line.decode(errors="surrogateescape") if "\udc80" <= letter <= "\udcff"
    )
    reason = f"{name}: not UTF-8 at byte {offset + at} (0x{value:02x})"
    if good <= len(wrong):
        return _showing(reason, _sample(blocks), propose(blocks))
    lines = ", ".join(f"{number:,} (byte {offset + at})" for number, at, *_ in wrong[:_SHOWN])
    more = f" and {len(wrong) - _SHOWN:,} more" if len(wrong) > _SHOWN else ""
    error = UserError(
        f"{reason}, but {counted(good, 'line')} with letters beyond ASCII are; mend line {lines}{more}, which"
        " may be in another encoding, as below, or damaged"
    )
    likely = propose(lambda: [line for *_, line, _ in wrong], shown=None)
    likely.sort(key=lambda codec: len(set(line.decode(codec, "replace")) - known))
    return _with_readings(error, line, {codec: codec for codec in likely[:_SHOWN]})


def _showing(reason: str, sample: bytes, likely: Sequence[str]) -> UserError:
    if not likely:
        return UserError(f"{reason}, nor in any encoding that is known here; give a text file in UTF-8")
    *others, last = likely
    beyond = sum(ord(character) > 127 for character in _text(sample, likely[0]))
    few = f", judged by only {counted(beyond, 'character')} beyond ASCII" if 0 < beyond < _FEW else ""
    looks = f"{', '.join(others)} or {last}" if others else last
    which = "the one that reads right below" if others else "it, if it reads right below"
    error = UserError(f"{reason}; it looks like {looks}{few}; add --encoding with {which}")
    return _with_readings(error, sample, {codec: f"--encoding {codec}" for codec in likely})


def _with_readings(error: UserError, sample: bytes, likely: Mapping[str, str]) -> UserError:
    """The error with notes: the line in which encodings differ most, cut about the differing letters, in each."""
    from rich.cells import set_cell_size

    label = max(map(len, likely.values()), default=0) + 4
    width = max(20, shutil.get_terminal_size().columns - label - 1)
    best, most = list[str](), -1
    for readings in zip(*(_text(sample, codec).split("\n") for codec in likely), strict=False):
        rows = list(itertools.zip_longest(*readings, "" if len(readings) == 1 else readings[0]))
        first = next((at for at, row in enumerate(rows) if len(set(row)) > 1), 0)
        start = max(0, first - width // 3) if max(map(len, readings)) > width else 0
        pairs = itertools.combinations(range(len(readings)), 2)
        seen = rows[start : start + width]
        differing = min((sum(row[a] != row[b] for row in seen) for a, b in pairs), default=len(seen))
        if differing > most:
            best, most = [one_line(text[start : start + width]) for text in readings], differing
    for name, text in zip(likely.values(), best, strict=True):
        error.add_note(f"  {name:{label - 2}}{set_cell_size(text, width).rstrip()}")
    return error


def refusal_of_hidden(blocks: Blocks, name: str, hidden: Sequence[str]) -> UserError:
    """The error for a text whose bytes are UTF-8 and that has another encoding, as its NULs or escapes show."""
    return _showing(f"{name}: not UTF-8 (it has the NULs or escapes of another encoding)", _sample(blocks), hidden)


def propose(blocks: Blocks, shown: int | None = _SHOWN) -> list[str]:
    """The likeliest encodings of those that decode the whole text, in the order of the detector.

    One that gives control characters of C1, which no text has, is none; of several that give the same characters the
    first is kept. Beside UTF-7, which prose with plus signs may be by chance, UTF-8 is given.
    """
    import chardet

    sample, found = _sample(blocks), dict[str, str]()
    eras = [chardet.EncodingEra.ALL]
    if sum(value > 127 for value in sample) < _FEW:  # which hardly distinguish encodings: every other one is of today
        eras.append(chardet.EncodingEra.MODERN_WEB)
    plain = sample.translate(None, _CONTROLS)
    if b"\0" in sample or len(sample) - len(plain) > 0.05 * len(sample):  # no text with some controls in it
        plain = sample
    orders = [chardet.detect_all(plain, ignore_threshold=True, compat_names=False, encoding_era=era) for era in eras]
    names = [one["encoding"] or "" for one in filter(None, itertools.chain(*itertools.zip_longest(*orders)))]
    if b"\0" in sample:  # of wide characters, if its line feeds are among them
        wide = ("utf-16-le", "utf-16-be")
        names += [one for one in wide if 2 * sample.decode(one, "replace").count("\n") > sample.count(b"\n")]
    for name in names:
        try:
            codec = codecs.lookup(name).name
            text = _text(sample, codec)
        except (LookupError, UnicodeDecodeError):
            continue
        if codec not in ("utf-8", "ascii") and text not in found and _decodes(blocks, codec, controls=False):
            found[text] = codec
        if len(found) == shown:
            break
    likely = list(found.values())
    return ["utf-7", "utf-8"] if likely[:1] == ["utf-7"] else likely


def hidden(blocks: Blocks) -> list[str]:
    """The encoding of a text whose bytes are UTF-8 too, as its NULs or escapes show; none where it is UTF-8."""
    found = propose(blocks)
    if not found or not found[0].startswith(_HIDDEN):
        return []
    return found if found[0] == "utf-7" else found[:1]


def _text(sample: bytes, codec: str) -> str:
    """A sample, decoded but for a last character that may be cut."""
    return codecs.getincrementaldecoder(codec)().decode(sample)


def _sample(blocks: Blocks) -> bytes:
    """The first lines with bytes beyond ASCII, NULs or escapes, or with plus signs as in UTF-7.

    Line feeds are no part of a character but in UTF-16.
    """
    sample = bytearray()
    for line in _lines(blocks):
        if not line.isascii() or b"\0" in line or b"\x1b" in line or b"~" in line:
            sample += line[:_SAMPLE]
        if len(sample) > _SAMPLE:
            break
    return bytes(sample) or b"".join(itertools.islice(filter(_SHIFTED.search, _lines(blocks)), _SAMPLE))


def _decodes(blocks: Blocks, codec: str, *, controls: bool = True) -> bool:
    """Whether a text can be decoded, and, unless `controls`, has no control characters of C1 then."""
    decoder = codecs.getincrementaldecoder(codec)()
    try:
        texts = map(decoder.decode, blocks())
        unusual = any(not controls and _C1.search(text) for text in texts)
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
            for match in MISREAD.finditer(data):
                if not total:
                    first, example = lines + data.count(b"\n", 0, match.start()), match[0]
                total, converted = total + 1, converted or match[0] != b"\0"
        lines += data.count(b"\n")
    if not total:
        return
    cause = "it is not text, or was UTF-16 once; look at the original file"
    if converted:
        cause = (
            "Windows-1252 was probably read as Latin-1 when the text was converted; convert the original with"
            " iconv -f CP1252 -t UTF-8"
        )
    shown = f"U+{ord(example.decode()):04X}"
    notice(f"{name}: {counted(total, 'control character')}, the first in line {first:,} ({shown}): {cause}")
