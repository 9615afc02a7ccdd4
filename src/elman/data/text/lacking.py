"""What a vocabulary lacks of a text: refused with its place, or counted as lines of a report."""

import unicodedata
from collections.abc import Collection, Iterable, Sequence

from elman.config.text import TextOptions
from elman.data.text.fitting import Piece
from elman.data.text.passages import passages
from elman.data.text.sources import Section
from elman.data.text.utf8 import read_lines
from elman.data.text.vocabulary import EOS, UNK, Vocabulary
from elman.errors import UserError, counted

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


EXAMPLES = 3  # words of each sort that a report names


class Tally:
    """What was met in a text: words that the vocabulary lacks, and words that are read otherwise than they stand.

    `ends` are the words `<eos>` that the text has besides the ends of its lines.
    """

    def __init__(self) -> None:
        self.count = self.unknown = self.refitted = self.marks = self.ends = self.forms = 0
        self._examples: dict[str, dict[str, None]] = {"unknown": {}, "refitted": {}, "marks": {}, "forms": {}}

    def add(self, text: str, pieces: Sequence[Piece], *, fitted: bool, known: Collection[str] = ()) -> None:
        """Count a word, or a character; `fitted` words may be read otherwise than they stand.

        `known` is what the vocabulary has, in which unknown words are looked up in Unicode's other normal forms.
        """
        self.count += 1
        unknown = [piece.text for piece in pieces if piece.unknown]
        if unknown:
            self.unknown += 1
            self._note("unknown", unknown[0])
            forms = (unicodedata.normalize(form, one) for one in unknown for form in ("NFC", "NFD"))
            if other := next((form for form in forms if form in known and form not in unknown), None):
                self.forms += 1
                self._note("forms", other)
        read = [piece.token for piece in pieces if piece.token is not None]
        self.ends += read.count(EOS)
        if fitted and read and read != [text] and len(unknown) < len(read):
            self.refitted += 1
            self._note("refitted", f"{text} as {' '.join(read)}")
        for piece in pieces:
            if piece.token is None and not piece.unknown:
                self.marks += 1
                self._note("marks", piece.text)

    def _note(self, sort: str, text: str) -> None:
        if len(self._examples[sort]) <= EXAMPLES:
            self._examples[sort].setdefault(text)

    def lines(self, unit: str, treated: str) -> list[str]:
        """The report, empty where the vocabulary has all as it stands.

        `unit` is what was counted, `word` or `character`; `treated` how unknown ones were read.
        """
        found = []
        if self.unknown:
            share = f"{self.unknown:,} of {counted(self.count, unit)} ({100 * self.unknown / self.count:.1f} %)"
            verb = "is" if self.unknown == 1 else "are"
            found.append(f"{share} {verb} not in the vocabulary, {treated}: {self._named('unknown')}")
        if self.forms:
            verb = "is" if self.forms == 1 else "are"
            found.append(
                f"{self.forms:,} of these {verb} known in another normal form of Unicode: {self._named('forms')};"
                " convert the text to it (NFC or NFD)"
            )
        if self.refitted:
            found.append(f"{counted(self.refitted, unit)} read as in the training text: {self._named('refitted')}")
        if self.marks:
            found.append(f"{counted(self.marks, 'mark')} left out that the vocabulary lacks: {self._named('marks')}")
        if self.ends:
            found.append(
                f"{counted(self.ends, f'word {EOS}', f'words {EOS}')} in the text read as ends of sentences; the end"
                " of a line is one already"
            )
        return found

    def _named(self, sort: str) -> str:
        shown = [text if text.isprintable() and text.strip() else repr(text) for text in self._examples[sort]]
        return ", ".join(shown[:EXAMPLES] + ["..."] * (len(shown) > EXAMPLES))
