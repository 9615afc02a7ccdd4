"""Text to tokens, streaming: lines, what is counted of them, and where `<eos>` stands."""

import codecs
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from elman.config.text import TextOptions
from elman.data.text.bytewise import from_bytes, to_bytes
from elman.data.text.cleaning import clean
from elman.data.text.spacing import unseparated
from elman.data.text.subwords import Subwords
from elman.data.text.tokeniser import tokenise
from elman.data.text.vocabulary import EOS
from elman.errors import UserError

_LONGEST = 1 << 16
_PLAIN = TextOptions()


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
            every line break that counts (as `<eos>` or as a space) is one character. Where tokens spell the text
            all its code points count, and a byte that is not UTF-8 is one.
        num_bytes: the bytes of these characters in UTF-8.
        num_words: the words, a line end being one: the tokens where they are words, else what white space separates.
        unseparated: letters that stand in clauses without spaces (`elman.data.text.spacing`).
        closed: whether a sentence ends here, so that what follows is another one.

    """

    words: list[str]
    characters: int
    num_bytes: int
    num_words: int
    unseparated: int
    closed: bool


def passages(lines: Iterable[Line], options: TextOptions, subwords: Subwords | None = None) -> Iterator[Passage]:
    """Clean and tokenise lines and put `<eos>` where `options.eos` says; `subwords` is the model of subwords.

    `line`: `<eos>` ends every line. A blank line is one `<eos>`; in `raw` text blank lines in a row are one `<eos>`,
        and those before the first word are none.
    `paragraph`: `<eos>` ends every block of lines between blank lines; blank lines are nothing themselves.
    `none`: blank lines are nothing, and where tokens spell the text every other line break is a space.
    `exact`: `<eos>` is a line feed, and a carriage return before it is a character like any other.
    """
    cleaned = (Line(clean(line.text, options), line.ended) for line in lines)
    match options.eos:
        case "paragraph":
            return _by_paragraph(cleaned, options, subwords)
        case "exact":
            return (_exact(line, options, subwords) for line in cleaned)
        case _:
            return _by_line(cleaned, options, subwords)


def read_lines(path: Path, start: int = 0, stop: int | None = None, options: TextOptions = _PLAIN) -> Iterator[Line]:
    """The lines of a UTF-8 file between two byte offsets (of line starts), in constant memory.

    Lines end at a line feed, and a carriage return before it belongs to the break. A byte order mark is
    skipped unless `eos` is `exact`. A line longer than 64 KiB comes in parts cut after a space.

    Raises:
        UserError: the file cannot be read, has no bytes, or is not UTF-8 and not read as `bytes`.

    """
    try:
        with path.open("rb") as file:
            if not file.read(1):
                raise UserError(f"{path}: the file is empty; give a text of at least two different words")
            marked = options.eos != "exact" and start == 0 and _has_mark(path)
            offset = start + 3 if marked else start
            file.seek(offset)
            rest, ended = b"", True
            while block := file.readline(limit := _limit(stop, offset + len(rest))):
                data = rest + block
                ended = len(block) < limit or limit < _LONGEST or data.endswith(b"\n")
                edge = len(data) if ended else data.rfind(b" ") + 1
                if edge:
                    yield Line(_decode(data[:edge], path, offset, options), ended)
                offset, rest = offset + edge, data[edge:]
            if not ended:
                yield Line(_decode(rest, path, offset, options), True)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); give a text file") from None


def read_passages(
    path: Path, options: TextOptions, start: int = 0, stop: int | None = None, subwords: Subwords | None = None
) -> Iterator[Passage]:
    """The passages of a file, or of a range of its bytes.

    Raises:
        UserError: as `read_lines`, and at the end if there was nothing but blank lines.

    """
    found = False
    for passage in passages(read_lines(path, start, stop, options), options, subwords):
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


def _by_line(lines: Iterable[Line], options: TextOptions, subwords: Subwords | None) -> Iterator[Passage]:
    keep_every_blank = options.eos == "line" and options.tokenisation != "raw"
    keep_blank, whole = keep_every_blank, True
    for line in lines:
        blank = whole and line.ended and not line.text.strip()
        if not blank or keep_blank:
            yield _passage(line, options, subwords, closes=options.eos == "line" and line.ended)
        keep_blank = keep_every_blank or (options.eos == "line" and not blank)
        whole = line.ended


def _by_paragraph(lines: Iterable[Line], options: TextOptions, subwords: Subwords | None) -> Iterator[Passage]:
    held: Line | None = None
    for line in lines:
        blank = not line.text.strip()
        if held is not None:
            yield _passage(held, options, subwords, closes=blank)
        held = None if blank else line
    if held is not None:
        yield _passage(held, options, subwords, closes=True)


def _exact(line: Line, options: TextOptions, subwords: Subwords | None) -> Passage:
    closes = line.text.endswith("\n")
    return _spelt(line.text.removesuffix("\n"), options, subwords, closes=closes)


def _passage(line: Line, options: TextOptions, subwords: Subwords | None, *, closes: bool) -> Passage:
    if options.spelt:
        text = line.text.removesuffix("\n").removesuffix("\r")
        return _spelt(text if text == line.text or closes else f"{text} ", options, subwords, closes=closes)
    words = tokenise(line.text, options)
    words += [EOS] if closes else []
    text = " ".join(line.text.split())
    return Passage(words, len(text) + 1, len(to_bytes(text)) + 1, len(words), unseparated(text), closes)


def _spelt(text: str, options: TextOptions, subwords: Subwords | None, *, closes: bool) -> Passage:
    words = tokenise(text, options, subwords)
    words += [EOS] if closes else []
    num_words, num_bytes = len(text.split()) + closes, len(to_bytes(text)) + closes
    return Passage(words, len(text) + closes, num_bytes, num_words, unseparated(text), closes)


def _decode(data: bytes, path: Path, offset: int, options: TextOptions) -> str:
    if options.tokenisation == "bytes":
        return from_bytes(data)
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
