"""Tokens back to readable text, a word at a time."""

from collections.abc import Iterable

from elman.config.text import TextOptions
from elman.data.text.bytewise import Decoder, readable
from elman.data.text.raw import split_raw
from elman.data.text.subwords import piece_bytes
from elman.data.text.vocabulary import EOS

APOSTROPHE, LEFT_QUOTE = "\u2019", "\u2018"
_TIGHT_BEFORE = frozenset([",", ".", ";", ":", "!", "?", ")", "]", "}", "%", "...", "..", "…", "”", "»"])
_TIGHT_AFTER = frozenset(["(", "[", "{", "$", "£", "€", "#", "@", "“", LEFT_QUOTE, "«"])
_TIGHT = frozenset(["--", "---", "—", "/"])
_MARKS = frozenset(['"', "'", APOSTROPHE])
_SENTENCE_END = frozenset([".", "!", "?"])
_RUN = 8


class Detokeniser:
    """The inverse of tokenisation, for a stream of words: `add` gives the text to append for the next word.

    For `raw` text: no space before , . ; : ! ? ) ] } and after ( [ {, none around dashes, quotation marks
    alternately open and close, and where leaving out a space would change the tokens there is one. With
    `lowercase`, sentences and lines begin with a capital, and so does the English word I. `<eos>` is a line
    break, with `eos = "paragraph"` a blank line. Words of pre-tokenised text are joined by spaces, characters
    by nothing.

    In raw text, tokenising the result gives the same tokens again (with their capitals folded where that is
    asked), except that three or more `<eos>` in a row are two and those at the very beginning are none.
    """

    def __init__(self, options: TextOptions) -> None:
        self._options = options
        self._break = "\n\n" if options.eos == "paragraph" else "\n"
        self._bytes = Decoder()
        self._run: list[str] = []
        self._open: set[str] = set()
        self._tight = True
        self._sentence_start = True
        self._line_start = True

    def add(self, word: str) -> str:
        """The text that `word` adds, with the space or line break that belongs before it."""
        if word == EOS:
            return self._end_line() if not self._options.spelt else self.end() + self._break
        self._line_start = False
        match self._options.tokenisation:
            case "characters":
                return word
            case "bytes" | "subwords":
                return self._bytes.add(piece_bytes(word))
            case "words":
                space = "" if self._tight else " "
                self._tight = False
                return space + word
            case "raw":
                return self._add_raw(word)

    def end(self) -> str:
        """The text of bytes that never became a character."""
        return self._bytes.end()

    def _end_line(self) -> str:
        if self._line_start:
            self._open.clear()
        self._run, self._tight, self._sentence_start, self._line_start = [], True, True, True
        return self._break

    def _add_raw(self, word: str) -> str:
        before, after = self._tightness(word)
        text = self._capitalised(word) if self._options.lowercase else word
        joined = [*self._run, text]
        glued = (self._tight or before) and split_raw("".join(joined)) == joined
        space = "" if glued or not self._run else " "
        self._run = joined[-_RUN:] if glued else [text]
        self._tight = after
        return space + text

    def _tightness(self, word: str) -> tuple[bool, bool]:
        """Whether the word wants no space before it, and none after it."""
        if word in _TIGHT:
            return True, True
        if word not in _MARKS:
            return word in _TIGHT_BEFORE, word in _TIGHT_AFTER
        if word in self._open:
            self._open.remove(word)
            return True, False
        if word == APOSTROPHE or (word == "'" and self._run and self._run[-1].endswith("s")):
            return True, False
        self._open.add(word)
        return False, True

    def _capitalised(self, word: str) -> str:
        starts, letters = self._sentence_start, any(character.isalnum() for character in word)
        self._sentence_start = word in _SENTENCE_END or (starts and not letters)
        if not letters or not (starts or word == "i" or word.startswith(("i'", f"i{APOSTROPHE}"))):
            return word
        mark = word[:1] if word[0] in ("'", APOSTROPHE) else ""
        capital = mark + word[len(mark)].upper() + word[len(mark) + 1 :]
        return capital if capital.lower() == word else word


def detokenise(words: Iterable[str], options: TextOptions) -> str:
    r"""Readable text for tokens.

    >>> options = TextOptions(tokenisation="raw", lowercase=True)
    >>> detokenise(["to", "be", ",", "or", "not", "to", "be", ":", "<eos>", "'tis", "i", "!"], options)
    "To be, or not to be:\n'Tis I!"
    """
    detokeniser = Detokeniser(options)
    text = "".join(detokeniser.add(word) for word in words)
    return text + detokeniser.end()


def shown(words: Iterable[str], options: TextOptions) -> str:
    """As `detokenise`, for reading: bytes that are not UTF-8 are U+FFFD."""
    return readable(detokenise(words, options))
