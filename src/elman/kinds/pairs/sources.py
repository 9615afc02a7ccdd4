"""Sources for a model of pairs, line by line: those that it cannot read are refused, or left out and reported."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from elman.data.text.fitting import Piece
from elman.data.text.lacking import Tally, unit_of
from elman.data.text.vocabulary import UNK
from elman.errors import counted
from elman.kinds.pairs.symbols import PairSymbols, Unreadable


class SourceReader:
    """Reads lines as sources, and tallies what the vocabulary lacks.

    A source is unreadable if it is longer than `max_source` of the run's data, or has no known symbol. It is refused in
    a message that names its place in the text called `name`; or with `leave_out` it is not read, which `report` states.
    `unread` holds the reasons of those that were left out, by the numbers of their lines from 0.
    """

    def __init__(self, symbols: PairSymbols, name: str = "source", *, leave_out: bool = False) -> None:
        self.symbols, self.tally, self.unread = symbols, Tally(), dict[int, Unreadable]()
        self._name, self._leave_out, self._lines = name, leave_out, 0

    def read(self, lines: Sequence[str]) -> dict[int, npt.NDArray[np.int32]]:
        """The ids [S] of the sources that are read, by the numbers of their lines from 0; blank lines have none.

        Raises Unreadable where a source cannot be read and is not left out, or none of all can.
        """
        found = {}
        for place, line in enumerate(lines):
            if not line.strip():
                continue
            self._lines += 1
            try:
                found[place] = self.symbols.encode_source(line, f"{self._name}:{place + 1}")
            except Unreadable as error:
                if not self._leave_out:
                    raise
                self.unread[place] = error
                continue
            for word in self.symbols.tokenisers.source_words(line.strip()):
                self.tally.add(word, (Piece(word, word, unknown=word not in self.symbols.source.ids),), fitted=False)
        if self.unread and not found:
            raise next(iter(self.unread.values()))
        return found

    def report(self) -> list[str]:
        """What was not read, and what the vocabulary lacks of the rest, each in a line."""
        lines = []
        if self.unread:
            long, options = sum(one.too_long for one in self.unread.values()), self.symbols.options
            reasons = {
                f"longer than {options.max_source} symbols (data.max_source)": long,
                f"without a symbol of the source vocabulary (tokenisation = {options.tokenisation})": (
                    len(self.unread) - long
                ),
            }
            why = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
            lines.append(
                f"{self._name}: {len(self.unread):,} of {counted(self._lines, 'source')} not read, with a"
                f" blank target: {why}; the first in line {min(self.unread) + 1:,}"
            )
        unit = (
            "subword" if self.symbols.options.tokenisation == "subwords" else unit_of(self.symbols.options.source_text)
        )
        return lines + [f"{self._name}: {line}" for line in self.tally.lines(unit, f"read as {UNK}")]
