"""UTF-8: files as text, whole or line by line, and bytes as text and as tokens.

Where bytes are the tokens, an ASCII byte is its character and any other is written `<0xE3>`. In text that Python holds,
a byte that is not UTF-8 is a lone surrogate (PEP 383), so that any bytes can be read as text and written back.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from elman.config.text import TextOptions
from elman.data.lines import lines_of
from elman.data.text.encodings import foreign, given
from elman.data.text.files import Files
from elman.errors import UserError
from elman.files import replacing, sha256_file, sha256_lines

BYTES = tuple(chr(value) if value < 0x80 else f"<0x{value:02X}>" for value in range(256))  # the token of every byte
MARK = "\ufeff"
SPACE = "\u2581"  # a space in a token of subwords
_NAMED = re.compile(r"<0x([0-9A-F]{2})>")

LONGEST = 1 << 16  # bytes of a line beyond which it is read in parts


def read_bytes(path: Path, advice: str = "give a text file") -> bytes:
    """The content of a file; where it cannot be read, raises UserError, whose message ends with `advice`."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); {advice}") from None


def decode(data: bytes, name: str) -> str:
    """The text of a user's file, as `elman.data.text.encodings.foreign` has it; a byte order mark of UTF-8 is included.

    Raises UserError as that does.
    """
    texts = foreign(lambda: [data], name)
    return data.decode() if texts is None else "".join(texts)


def strict(data: bytes, name: str, offset: int = 0) -> str:
    """UTF-8 bytes, from `offset` of a text on, as text; raises UserError where they are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        from elman.data.text.guessing import refusal

        raise refusal(lambda: [data], name, offset) from None


def read_text(path: Path, advice: str = "give a text file") -> str:
    """The text of a user's file without its byte order mark; raises UserError as `read_bytes` and `decode` do."""
    return decode(read_bytes(path, advice), str(path)).removeprefix(MARK)


def read_file_lines(path: Path, advice: str = "give a text file") -> list[str]:
    """The lines of a user's file without their breaks; raises UserError as `read_text` does, and where it is blank."""
    text = read_text(path, advice)
    if not text.strip():
        raise UserError(f"{path}: the file is empty; {advice}")
    return lines_of(text)


def as_utf8(path: Path, folder: Path) -> Path:
    """The file itself, or where it is not UTF-8 a copy in UTF-8, which `folder` keeps.

    It is read in constant memory. Raises UserError as `elman.data.text.encodings.foreign` does.
    """
    if (texts := foreign(Files.of(path, exact=True).blocks, str(path))) is None:
        return path
    copy = folder / f"{sha256_lines(sha256_file(path), given() or '')}.txt"
    with replacing(copy) as temporary, temporary.open("wb") as file:
        for text in texts:
            file.write(text.encode())
    return copy


def checked(path: Path, folder: Path, options: TextOptions) -> Files:
    """A file as `as_utf8` gives it, or as it stands where it is read as `bytes`."""
    file = path if options.tokenisation == "bytes" else as_utf8(path, folder)
    return Files.of(file, exact=options.eos == "exact")


class Line(NamedTuple):
    """A line of a file with its line break, if it has one, or a part of one over 64 KiB; `ended`: it ends here.

    `number` is its number in the file from 1, where whoever reads it has counted; `stop` the offset of the byte after
    it, where it was read from a file.
    """

    text: str
    ended: bool
    number: int = 0
    stop: int = 0


def read_lines(
    source: Files | Path, start: int = 0, stop: int | None = None, options: TextOptions | None = None
) -> Iterator[Line]:
    """The lines of a UTF-8 text between two byte offsets (of line starts), in constant memory.

    Lines end as `elman.data.lines` says, but at line feeds alone where `eos` is `exact`, and there a byte order mark is
    a part of the text. A line longer than 64 KiB is yielded in parts cut before blanks.

    Raises UserError where a file cannot be read, has no bytes, or is not UTF-8 and not read as `bytes`.
    """
    options = options or TextOptions()
    files, offset = Files.of(source, exact=options.eos == "exact"), start
    with files.reading(start) as file:
        for data, ended in parts(file, math.inf if stop is None else stop - start):
            yield Line(as_read(data, files, options), ended, stop=offset + len(data))
            offset += len(data)
    if not offset:
        raise empty(files)


def empty(files: Files) -> UserError:
    return UserError(f"{files.name}: the file is empty; give a text of at least two different words")


def parts(file: IO[bytes], size: float = math.inf) -> Iterator[tuple[bytes, bool]]:
    """The lines of the next bytes, with their breaks, and whether each ends; long ones in parts cut before blanks.

    No token reaches over such a cut: subwords have the blanks before a word in front of it.
    """
    rest, ended = b"", True
    while block := file.readline(limit := int(min(LONGEST, size - len(rest)))):
        data = rest + block
        ended = len(block) < limit or limit < LONGEST or data.endswith(b"\n")
        edge = len(data) if ended else len(data[: data.rfind(b" ") + 1].rstrip(b" "))
        if edge:
            yield data[:edge], ended
        size, rest = size - edge, data[edge:]
    if not ended:
        yield rest, True


def as_read(data: bytes, files: Files, options: TextOptions) -> str:
    """Bytes of a text as they are read; raises UserError where they are not UTF-8 and not read as `bytes`."""
    if options.tokenisation == "bytes":
        return from_bytes(data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        for path in files.paths if len(files.paths) > 1 else ():
            for _ in read_lines(path, options=options):  # the file that it is in, and the place there
                pass
        from elman.data.text.guessing import refusal

        raise refusal(files.stored.blocks, files.name) from None


def to_bytes(text: str) -> bytes:
    """Text as UTF-8, lone surrogates as the bytes that they stand for; other surrogates as they would be written."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def from_bytes(data: bytes) -> str:
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


def is_byte(piece: str) -> bool:
    """Whether a token stands for one byte, as `<0xE3>` does."""
    return _NAMED.fullmatch(piece) is not None


def piece_bytes(piece: str) -> bytes:
    """The bytes that a token of bytes or subwords stands for, such as `<0xE3>` among them."""
    named = _NAMED.fullmatch(piece)
    return bytes.fromhex(named[1]) if named else to_bytes(piece.replace(SPACE, " "))
