"""Text to tokens, streaming: white space, raw text or characters, and where `<eos>` stands."""

import codecs
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from elman.data.options import TextOptions
from elman.data.vocabulary import EOS
from elman.errors import UserError

_LONGEST = 1 << 16

_LEADING = "tis|twas|twere|twill|twould|twixt|tween|gainst|mongst|scape|em|gan|gins|cause"
_TRAILING = "th|o|i|ha|wi|t"

_LETTER = r"[\w\u0300-\u036f]"
_APOSTROPHE = r"['\u2019]"

_RAW = re.compile(
    rf"""
      <unk>                                                           # stands for an unknown word
    | (?<!\w) {_APOSTROPHE} (?ai:{_LEADING}) (?!{_LETTER})             # 'tis 'twas 'gainst
    | (?<!\w) (?ai:{_TRAILING}) {_APOSTROPHE} (?!{_LETTER})            # th' o' i'
    | \d+ (?:[.,:/]\d+)+ (?!{_LETTER})                                # 3.14  1,000  12:30
    | {_LETTER}+ (?: (?:[-\u2011]|{_APOSTROPHE}) {_LETTER}+ )*         # well-beloved  o'er
    | -{{2,}} | \.{{2,}}                                              # dashes or points in a row
    | \S                                                              # any other mark
    """,
    re.VERBOSE,
)


class Line(NamedTuple):
    """A line of a file, or a part of one that is longer than 64 KiB.

    Attributes:
        text: the line with its line break, if it has one.
        ended: the line ends here.

    """

    text: str
    ended: bool


class Passage(NamedTuple):
    """The tokens of one line.

    Attributes:
        words: the tokens, with `<eos>` where the rule puts one.
        characters: how many characters of text the tokens stand for: white space in a row is one space, and
            every line break that counts (as `<eos>` or as a space) is one character.
        closed: whether a sentence ends here, so that what follows is another one.

    """

    words: list[str]
    characters: int
    closed: bool


def split_raw(text: str) -> list[str]:
    """Tokenise ordinary text.

    A token is, in this order of preference:

    1. `<unk>`;
    2. a word with an apostrophe before or after it from a closed list: 'tis, 'twas, 'twere, 'twill, 'twould,
       'twixt, 'tween, 'gainst, 'mongst, 'scape, 'em, 'gan, 'gins, 'cause; th', o', i', ha', wi', t';
    3. a number with inner points, commas, colons or slashes: 3.14, 1,000, 12:30;
    4. a word: letters, digits, underscores and combining accents, with inner single apostrophes and hyphens:
       o'er, well-beloved;
    5. two or more hyphens, or two or more points, in a row;
    6. any other single mark.

    White space only separates. `elman.data.detokenise` is the inverse. Scripts that do not put spaces between
    words, or that need combining vowel signs, should be tokenised by a tool for their language and read as
    `words`.

    >>> split_raw("'Tis he--the King's son, well-beloved!")
    ["'Tis", 'he', '--', 'the', "King's", 'son', ',', 'well-beloved', '!']
    """
    return _RAW.findall(text)


def tokenise(text: str, options: TextOptions) -> list[str]:
    """The tokens of one line of text, without `<eos>`."""
    match options.tokenisation:
        case "words":
            words = text.split()
        case "raw":
            words = split_raw(text)
        case "characters":
            words = list(text)
    return fold(words) if options.lowercase else words


def fold(words: Iterable[str]) -> list[str]:
    """The words in small letters."""
    return [word.lower() for word in words]


def passages(lines: Iterable[Line], options: TextOptions) -> Iterator[Passage]:
    """Tokenise lines and put `<eos>` where `options.eos` says.

    `line`: `<eos>` ends every line. A blank line is one `<eos>` in text of `words` or `characters`; in `raw`
        text blank lines in a row are one `<eos>`, and those before the first word are none.
    `paragraph`: `<eos>` ends every block of lines between blank lines; blank lines are nothing themselves.
    `none`: blank lines are nothing, and in text of `characters` every other line break is a space.
    """
    return _by_paragraph(lines, options) if options.eos == "paragraph" else _by_line(lines, options)


def read_lines(path: Path, start: int = 0, stop: int | None = None) -> Iterator[Line]:
    """The lines of a UTF-8 file between two byte offsets (of line starts), in constant memory.

    Lines end at a line feed, and a carriage return before it belongs to the break. A byte order mark is
    skipped. A line longer than 64 KiB comes in parts cut after a space.

    Raises:
        UserError: the file cannot be read, has no bytes, or is not UTF-8.

    """
    try:
        with path.open("rb") as file:
            if not file.read(1):
                raise UserError(f"{path}: the file is empty; give a text of at least two different words")
            offset = start + 3 if start == 0 and _has_mark(path) else start
            file.seek(offset)
            rest, ended = b"", True
            while block := file.readline(limit := _limit(stop, offset + len(rest))):
                data = rest + block
                ended = len(block) < limit or limit < _LONGEST or data.endswith(b"\n")
                edge = len(data) if ended else data.rfind(b" ") + 1
                if edge:
                    yield Line(_decode(data[:edge], path, offset), ended)
                offset, rest = offset + edge, data[edge:]
            if not ended:
                yield Line(_decode(rest, path, offset), True)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); give a text file") from None


def read_passages(path: Path, options: TextOptions, start: int = 0, stop: int | None = None) -> Iterator[Passage]:
    """The passages of a file, or of a range of its bytes.

    Raises:
        UserError: as `read_lines`, and at the end if there was nothing but blank lines.

    """
    found = False
    for passage in passages(read_lines(path, start, stop), options):
        found = found or any(word != EOS for word in passage.words)
        yield passage
    if not found:
        part = "" if stop is None else f" between bytes {start} and {stop}"
        raise UserError(f"{path}: only blank lines{part}; give a text of at least two different words")


def read_tokens(path: Path, options: TextOptions) -> Iterator[list[str]]:
    """The tokens of a file, a line at a time, `<eos>` included; memory does not grow with the file.

    Raises:
        UserError: the file cannot be read, is empty, has only blank lines or is not UTF-8 (with the byte
            offset).

    """
    return (passage.words for passage in read_passages(path, options))


def _limit(stop: int | None, position: int) -> int:
    return _LONGEST if stop is None else min(_LONGEST, stop - position)


def _by_line(lines: Iterable[Line], options: TextOptions) -> Iterator[Passage]:
    keep_every_blank = options.eos == "line" and options.tokenisation != "raw"
    keep_blank, whole = keep_every_blank, True
    for line in lines:
        blank = whole and line.ended and not line.text.strip()
        if not blank or keep_blank:
            yield _passage(line, options, closes=options.eos == "line" and line.ended)
        keep_blank = keep_every_blank or (options.eos == "line" and not blank)
        whole = line.ended


def _by_paragraph(lines: Iterable[Line], options: TextOptions) -> Iterator[Passage]:
    held: Line | None = None
    for line in lines:
        blank = not line.text.strip()
        if held is not None:
            yield _passage(held, options, closes=blank)
        held = None if blank else line
    if held is not None:
        yield _passage(held, options, closes=True)


def _passage(line: Line, options: TextOptions, *, closes: bool) -> Passage:
    if options.tokenisation == "characters":
        text = line.text.removesuffix("\n").removesuffix("\r")
        words = tokenise(text if text == line.text or closes else f"{text} ", options)
        words += [EOS] if closes else []
        return Passage(words, len(words), closes)
    words = tokenise(line.text, options)
    characters = len(" ".join(line.text.split())) + 1
    return Passage([*words, EOS] if closes else words, characters, closes)


def _decode(data: bytes, path: Path, offset: int) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: not UTF-8 at byte {offset + error.start} (0x{data[error.start]:02x}); "
            f"convert it first, for example with: iconv -f LATIN1 -t UTF-8"
        ) from None


def _has_mark(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(3) == codecs.BOM_UTF8
