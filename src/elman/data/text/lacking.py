"""What a vocabulary without `<unk>` lacks: the message, and where it stands in the files of a text."""

from collections.abc import Iterable

from elman.config.text import TextOptions
from elman.data.text.passages import passages
from elman.data.text.sources import Section
from elman.data.text.utf8 import read_lines
from elman.data.text.vocabulary import UNK, Vocabulary
from elman.errors import UserError

CURE = "take it out, or train with min_count = 2 or more to have one"


def unit_of(options: TextOptions) -> str:
    """What messages call a token: a character or a word."""
    return "character" if options.tokenisation == "characters" else "word"


def refusal(token: str, vocabulary: Vocabulary, options: TextOptions, place: str, cure: str = CURE) -> UserError:
    """The error for a token that a vocabulary lacks, whose message begins with its place and ends with the cure."""
    unit = unit_of(options)
    return UserError(
        f"{place}: the {unit} {token!r} is not in the vocabulary of {len(vocabulary):,} {unit}s, which has no {UNK};"
        f" {cure}"
    )


def require_known(tokens: Iterable[str], vocabulary: Vocabulary, options: TextOptions, section: Section) -> None:
    """Demand that a vocabulary without `<unk>` has tokens of a section.

    Raises UserError, which names the file and the line, where it lacks one.
    """
    token = next((one for one in tokens if one not in vocabulary.ids), None) if vocabulary.unk is None else None
    if token is not None:
        lines = read_lines(section.files, section.start, section.stop, options)
        stops = (passage.line.stop for passage in passages(lines, options) if token in passage.words)
        raise refusal(token, vocabulary, options, section.files.place(next(stops) - 1))
