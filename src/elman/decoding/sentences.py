"""Where a text that is drawn token by token has so many sentences."""

import re

from elman.config.text import TextOptions
from elman.data.text.tokeniser import Detokeniser
from elman.data.text.vocabulary import EOS

_END = re.compile(r"""[.!?…]+["'”’)\]»]*\s|[。！？]+[」』”’）)]*[^。！？」』”’）)]""")  # noqa: RUF001
_LONGEST = 64
"""Characters that are looked back on; more marks in a row are no sentence."""


class SentenceLimit:
    """The first sentences of a text, so many of them.

    A sentence ends at `<eos>` where the run has it: then it is a line or a paragraph. Elsewhere it ends with a final
    mark, and the quotation marks and brackets behind it, before white space; in scripts that do without spaces, before
    anything else. A text that begins within a sentence ends that one first.
    """

    def __init__(self, number: int, options: TextOptions) -> None:
        self._left, self._by_eos = number, options.eos != "none"
        self._undo, self._tail = Detokeniser(options), ""

    @property
    def reached(self) -> bool:
        """Whether no further token belongs to the sentences."""
        return self._left == 0

    def admits(self, word: str) -> bool:
        """Whether a token belongs to the sentences; it must be asked about every token, in order."""
        if self._by_eos:
            self._left -= word == EOS
            return True
        self._tail = (self._tail + self._undo.add(word))[-_LONGEST:]
        while self._left and (found := _END.search(self._tail)):
            self._left -= 1
            self._tail = self._tail[found.end() - 1 :]
        return not self.reached
