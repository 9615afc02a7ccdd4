"""Tables of sentences for experiments: one column is the text, the others are carried along."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from elman.config.text import TextOptions
from elman.data.lines import lines_of
from elman.data.tables import named, rows_of
from elman.data.text.passages import clean, is_unspaced
from elman.data.text.reading import Sentence
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.utf8 import piece_bytes, to_bytes
from elman.data.text.vocabulary import EOS
from elman.errors import UserError

SHOWN = 20  # unknown words that a line names
_WHITE = bytes(range(9, 14)) + b" "


class Stimulus(NamedTuple):
    """A sentence of an experiment.

    Attributes:
        line: its line in the file.
        text: the text to be read.
        carried: the other cells of its row, by column.
        regions: the texts of its regions; empty where it has none.
    """

    line: int
    text: str
    carried: dict[str, str]
    regions: tuple[str, ...] = ()


def read_table(text: str, name: str, column: str) -> list[Stimulus]:
    """The rows of a table with a header (`elman.data.tables`), of which one column is the text.

    Raises UserError where it has no such column, or a row is not as long as the header or has no text.
    """
    (_, header), *rows = rows_of(text, name)
    if column not in [one.strip() for one in header]:
        raise UserError(f"{name}:1: no column {column!r}; it has {', '.join(header)}; name one with --column")
    table = named(name, header, rows)
    found = []
    for number, cells in table.rows:
        carried = dict(zip(table.columns, cells, strict=True))
        sentence = " ".join(lines_of(carried.pop(column)))
        if not sentence:
            raise UserError(f"{name}:{number}: the cell {column!r} is empty; give every row a text")
        found.append(Stimulus(number, sentence, carried))
    return found


def lines_as_stimuli(lines: Iterable[str]) -> list[Stimulus]:
    numbered = enumerate(lines, start=1)
    return [Stimulus(number, line.rstrip("\r\n"), {}) for number, line in numbered if line.strip()]


def divided(stimulus: Stimulus, separator: str, name: str, options: TextOptions) -> Stimulus:
    """A sentence with regions, which a separator divides in its text, and the text without the separators (`joined`).

    Raises UserError where a region is empty.

    >>> divided(Stimulus(2, "The dog | that barked| ran .", {}), "|", "items.tsv", TextOptions())
    Stimulus(line=2, text='The dog that barked ran .', carried={}, regions=('The dog', 'that barked', 'ran .'))
    """
    regions = tuple(part.strip() for part in stimulus.text.split(separator))
    if not all(regions):
        at = 1 + next(index for index, region in enumerate(regions) if not region)
        raise UserError(f"{name}:{stimulus.line}: region {at} of {len(regions)} is empty; take a {separator!r} out")
    return stimulus._replace(text=joined(regions, options), regions=regions)


def joined(regions: Sequence[str], options: TextOptions) -> str:
    """Regions as a text with these options, with a space between them.

    There is none beside letters of a script without spaces, unless spaces separate the words of all texts.
    """
    text, spaced = regions[0], options.tokenisation == "words"
    for region in regions[1:]:
        text += (" " if spaced or not (is_unspaced(text[-1]) or is_unspaced(region[0])) else "") + region
    return text


def regions_of(sentence: Sentence, stimulus: Stimulus, tokeniser: Tokeniser, place: str) -> list[int]:
    """The region of each piece of a sentence, from 0.

    A piece belongs to the region of its first letter, white space to the region before it unless it begins a word;
    `<eos>` too where tokens are smaller than words, otherwise it is a region of its own after the last. Raises
    UserError where the options of the run change the text so much that regions are lost.
    """
    options = tokeniser.options
    ends, total = [], 0
    for text in stimulus.regions:
        cleaned = clean(text, options)
        total += _size(cleaned.lower() if options.lowercase else cleaned, tokeniser)
        ends.append(total)
    found, at, region = [], 0, 0
    for piece, begins in zip(sentence.pieces, sentence.starts, strict=True):
        if piece == EOS:
            found.append(region if options.spelt else len(ends))
            continue
        size = _size(piece, tokeniser, piece_bytes)
        while (size or begins) and region < len(ends) - 1 and at >= ends[region]:
            region += 1
        at += size
        found.append(region)
    if at != total:
        raise UserError(
            f"{place}: the run's normalisation changes the text of the regions; divide the text as the run reads it"
        )
    return found


class UnknownWords(NamedTuple):
    """The unknown words of a condition: how many of its sentences have some, and the words, the most frequent first."""

    condition: str
    sentences: int
    strange: int
    words: tuple[str, ...]

    @property
    def share(self) -> float:
        """Of the sentences that have some."""
        return self.strange / self.sentences

    @property
    def named(self) -> str:
        """The words, or the first of many."""
        more = f" and {len(self.words) - SHOWN:,} more" if len(self.words) > SHOWN else ""
        return ", ".join(self.words[:SHOWN]) + more

    def facts(self) -> dict[str, Any]:
        return {**self._asdict(), "share": self.share}

    def line(self) -> str:
        return (
            f"{self.condition}: {self.strange:,} of {self.sentences:,} ({100 * self.share:.1f} %) have unknown words:"
            f" {self.named}"
        )


def unknown_by(conditions: Sequence[str], lacking: Sequence[Collection[str]]) -> list[UnknownWords]:
    """What is unknown in the sentences of each condition, given the words that a model lacks of each sentence."""
    found = list[UnknownWords]()
    for condition in dict.fromkeys(conditions):
        members = [words for name, words in zip(conditions, lacking, strict=True) if name == condition]
        counts = Counter(word for words in members for word in words)
        words = tuple(word for word, _ in counts.most_common())
        found.append(UnknownWords(condition, len(members), sum(map(bool, members)), words))
    return found


def of_known_items(items: Sequence[Hashable], lacking: Sequence[Collection[str]]) -> list[int]:
    """The numbers of the sentences of items none of whose sentences has an unknown word.

    >>> of_known_items(["a", "a", "b", "b"], [[], ["xyzzy"], [], []])
    [2, 3]
    """
    strange = {item for item, words in zip(items, lacking, strict=True) if words}
    return [number for number, item in enumerate(items) if item not in strange]


def _size(text: str, tokeniser: Tokeniser, as_bytes: Callable[[str], bytes] = to_bytes) -> int:
    """How much of a text is not white space: bytes where the tokens spell bytes, otherwise characters."""
    if tokeniser.options.open_vocabulary:
        return len(as_bytes(text).translate(None, _WHITE))
    letters = "".join(text.split())
    return len(letters.lower() if tokeniser.options.lowercase else letters)
