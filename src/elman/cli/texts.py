"""The texts that commands read, from files or standard input, what is reported of them, and text on standard output."""

import io
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from elman.cli.groups import UnknownOptions
from elman.cli.options import group
from elman.config.network import Encoder
from elman.config.parts import tag_of
from elman.config.text import TextOptions
from elman.data.lines import fields, with_breaks
from elman.data.stimuli import Stimulus
from elman.data.text.encodings import STANDARD_INPUT, marked
from elman.data.text.files import Files
from elman.data.text.reading import Sentence, TextReader
from elman.data.text.tokeniser import split_raw
from elman.data.text.utf8 import MARK, checked, decode, from_bytes, read_bytes, strict
from elman.data.text.vocabulary import EOS, UNK
from elman.errors import ENCODING, UserError
from elman.files import cache_folder
from elman.jobs import Advance

if TYPE_CHECKING:
    from elman.data.text.lacking import Tally
    from elman.tasks.text.model import TextModel


@group("Reading", 3)
class ReadingOptions:
    """How natural text is read by a model whose training text was tokenised already.

    Attributes:
        as_is: leave words as they stand; by default an unknown word is folded, and its marks and contractions split
            off, as in the training text.
    """

    as_is: bool = False

    def reader(self, loaded: "TextModel", name: str, unknown: UnknownOptions | None = None) -> TextReader:
        """What reads a text of this name for a run."""
        leave_out = unknown is not None and unknown.unknown == "exclude"
        cure = "take it out" if unknown is None else "take it out, or add --unknown exclude, which leaves it out"
        return loaded.reader(name, as_is=self.as_is, leave_out=leave_out, cure=cure)


def report(reader: TextReader) -> None:
    """Say on standard error which words the vocabulary lacks, and which were read otherwise than they stand."""
    for line in reader.report():
        print(line, file=sys.stderr)


def whole_sentences(stimuli: Sequence[Stimulus], reader: TextReader, name: str) -> Iterator[Sentence]:
    """Each text as one sentence; raises UserError where nothing of it can be read."""
    for stimulus in stimuli:
        sentence = reader.complete(stimulus.text, stimulus.line)
        if all(token == EOS for token in sentence.read):
            raise UserError(f"{name}:{stimulus.line}: no token that the model could read in {stimulus.text!r}")
        yield sentence


def write_any_text() -> None:
    """Let standard output take text of any bytes: lone surrogates become the bytes they stand for (PEP 383)."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")


def sentence_lines(file: str | None, text: str | None) -> tuple[list[str], str]:
    """The lines of a file of sentences, or one sentence instead, and what messages call them.

    Raises UserError where both or none are given, or the file cannot be read or is empty.
    """
    if (file is None) == (text is None):
        raise UserError("give a FILE with a sentence per line (- is standard input), or one sentence with --text")
    if file is None:
        return [text or ""], "--text"
    return [line.rstrip("\n") for line in read_lines(file)], shown_name(file)


def sentences(lines: Sequence[str], name: str, *, raw: bool) -> list[list[str]]:
    """The words of the sentence in every line, at spaces or, if `raw`, with marks split off.

    Raises UserError where a line is blank.
    """
    found = [split_raw(line) if raw else fields(line) for line in lines]
    blank = [number for number, words in enumerate(found, start=1) if not words]
    if blank:
        raise UserError(f"{name}:{blank[0]}: a blank line; every line is a sentence: remove it")
    return found


def say_unknown(encoder: Encoder, tally: "Tally", name: str) -> None:
    """Report on standard error which words of a text the vocabulary lacks, unless the encoder reads their spelling."""
    if tag_of(encoder) == "characters":
        return
    for line in tally.lines("word", f"read as {UNK}"):
        print(f"{name}: {line}", file=sys.stderr)


class Text:
    """A text that is read line by line, in constant memory: a file, compressed or not, or standard input (`-`).

    Raises UserError where the file cannot be read, or is not UTF-8 although its bytes are not the tokens.
    """

    def __init__(self, name: str, options: TextOptions | None = None, advance: Advance = None) -> None:
        self.name, self.options, self._advance = name, options or TextOptions(), advance
        self.files = None if name == "-" else _files(Path(name), self.options)

    def lines(self, start: int = 0) -> Iterator[str]:
        """The lines from a byte on, with their breaks; standard input line by line as it arrives.

        Raises UserError where all of them are blank and none comes before them.
        """
        if self.files is None:
            yield from _standard_input(self.options)
            return
        size, found, at, shown = self.files.size, start > 0, start, start
        with self.files.reading(start) as file:
            for data in file:
                line = from_bytes(data) if _any_bytes(self.options) else strict(data, self.name, at)
                found, at = found or bool(line.strip()), at + len(data)
                if self._advance is not None and at - shown >= _EVERY:
                    self._advance(at, size)
                    shown = at
                yield line
        _require_text(self.name, found=found, size=at)


_EVERY = 1 << 16  # bytes after which progress is reported


def _files(path: Path, options: TextOptions) -> Files:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror}); give a text file, or - for standard input"
        ) from None
    return checked(path, cache_folder() / "utf-8", options)


def stream_lines(name: str, text: TextOptions | None = None) -> Iterator[str]:
    """The lines of a text one by one, standard input as they arrive; raises UserError as `read_lines` does."""
    return Text(name, text).lines()


def _standard_input(text: TextOptions) -> Iterator[str]:
    offset, found = 0, False
    while data := sys.stdin.buffer.readline():
        if not offset and not _any_bytes(text) and (marked(data) or b"\0" in data or os.environ.get(ENCODING)):
            data += sys.stdin.buffer.read()  # its lines cannot be found before it is decoded
        line = _decoded(data, "-", text, offset)
        found, offset = found or bool(line.strip()), offset + len(data)
        yield from with_breaks(line, exact=text.eos == "exact")
    _require_text("-", found=found, size=offset)


def read_lines(name: str, text: TextOptions | None = None) -> list[str]:
    """The lines of a text, `-` being standard input; `text` determines how it is decoded.

    Raises UserError where it cannot be read, is empty, or is not UTF-8 although its bytes are not the tokens.
    """
    found = read_output(name, text)
    _require_text(name, found=any(map(str.strip, found)), size=len(found))
    return found


def read_output(name: str, text: TextOptions | None = None) -> list[str]:
    """The lines of a text, such as the output of a system, which may all be blank."""
    return with_breaks(read_text(name, text), exact=text is not None and text.eos == "exact")


def read_text(name: str, text: TextOptions | None = None) -> str:
    """A text in one string, which may be empty; raises UserError where it cannot be read or decoded."""
    advice = "give a text file, or - for standard input"
    return _decoded(sys.stdin.buffer.read() if name == "-" else read_bytes(Path(name), advice), name, text)


def _decoded(data: bytes, name: str, text: TextOptions | None, offset: int = 0) -> str:
    if _any_bytes(text):
        found = data.decode(errors="surrogateescape")
    else:
        later = offset and b"\x1b" not in data and b"~{" not in data
        found = strict(data, shown_name(name), offset) if later else decode(data, shown_name(name))
    exact = text is not None and text.eos == "exact"
    return found if exact or offset else found.removeprefix(MARK)


def _any_bytes(text: TextOptions | None) -> bool:
    return text is not None and text.tokenisation == "bytes"


def _require_text(name: str, *, found: bool, size: int) -> None:
    if not found:
        what = "only blank lines" if size else "the file is empty"
        raise UserError(f"{shown_name(name)}: {what}; give a file with text")


def shown_name(name: str) -> str:
    """The name of a file, or of standard input."""
    return STANDARD_INPUT if name == "-" else name
