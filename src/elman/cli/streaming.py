"""What commands that read large texts share: a part of a text for one of several processes, the output, progress."""

import contextlib
import io
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

from cyclopts import Parameter

from elman.cli import progress, texts
from elman.cli.options import OutFile, group
from elman.data.text.lacking import Tally
from elman.data.text.reading import Sentence, TextReader
from elman.data.text.shards import WHOLE_TEXT, Shard, shard_of
from elman.errors import UserError
from elman.files import replacing
from elman.jobs import Advance

if TYPE_CHECKING:
    from elman.tasks.text.model import TextModel

BATCH = 32  # sentences that are computed side by side


@group("Large texts", 4)
class ShardOptions:
    """A part of a large text.

    Attributes:
        shard: read only part I of N, such as 2/8; the outputs of all parts, one after another, are the output of the
            whole.
    """

    shard: Annotated[str | None, Parameter(metavar="I/N")] = None

    @property
    def place(self) -> tuple[int, int] | None:
        """The number of the part, from 1, and how many there are; raises UserError where it is not I/N."""
        if self.shard is None:
            return None
        found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", self.shard)
        number, parts = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= parts:
            raise UserError(f"--shard is {self.shard!r}; give I/N, such as 2/8 for the second of eight parts")
        return number, parts

    def part(self, text: texts.Text, loaded: "TextModel", reader: TextReader) -> Shard:
        """The part of a text whose sentences are read; `reader` is a fresh one, which counts those before it.

        Raises UserError where the text is standard input.
        """
        if self.place is None:
            return WHOLE_TEXT
        if text.files is None:
            raise UserError("--shard: standard input has no known end; give a file")
        return shard_of(
            text.files, loaded.options, *self.place, BATCH, lambda lines: sum(1 for _ in reader.sentences(lines))
        )


def sentences(text: texts.Text, part: Shard, reader: TextReader) -> Iterator[Sentence]:
    """The sentences of a part of a text; the reader tallies these alone."""
    found = reader.sentences(text.lines(part.start), part.line)
    for _ in itertools.islice(found, part.skip):
        pass
    if part.skip:
        reader.tally = Tally()
    return found if part.sentences is None else itertools.islice(found, part.sentences)


@contextlib.contextmanager
def output(out: OutFile) -> Iterator[TextIO]:
    """A text to write: a file, which appears when it is complete, or standard output, where rows appear at once."""
    if out is None or out == Path("-"):
        yield sys.stdout
        return
    with (
        replacing(out) as temporary,
        io.TextIOWrapper(temporary.open("wb"), "utf-8", "surrogateescape", newline="") as file,
    ):
        yield file


@contextlib.contextmanager
def reading(what: str, out: OutFile) -> Iterator[Advance]:
    """A bar for a text that is read, in bytes, unless rows are written to the same terminal."""
    if (out is None or out == Path("-")) and sys.stdout.isatty():
        yield None
        return
    with progress.preparing(what) as advance:
        yield lambda done, total: advance(what, done, total)
