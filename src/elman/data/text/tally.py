"""What was met in a text that a vocabulary does not have as it stands, as lines of a report."""

from collections.abc import Sequence

from elman.data.text.fitting import Piece
from elman.data.text.vocabulary import EOS
from elman.errors import counted

EXAMPLES = 3
"""Words of each sort that a report names."""


class Tally:
    """What was met in a text: words that the vocabulary lacks, and words that are read otherwise than they stand.

    `ends` are the words `<eos>` that the text has besides the ends of its lines.
    """

    def __init__(self) -> None:
        self.count = self.unknown = self.refitted = self.marks = self.ends = 0
        self._examples: dict[str, dict[str, None]] = {"unknown": {}, "refitted": {}, "marks": {}}

    def add(self, text: str, pieces: Sequence[Piece], *, fitted: bool) -> None:
        """Count a word, or a character; `fitted` words may be read otherwise than they stand."""
        self.count += 1
        unknown = [piece.text for piece in pieces if piece.unknown]
        if unknown:
            self.unknown += 1
            self._note("unknown", unknown[0])
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
