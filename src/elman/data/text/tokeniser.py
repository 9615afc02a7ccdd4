"""Text to tokens and back: one object for every tokenisation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from elman.config.text import TextOptions
from elman.data.text import bytewise
from elman.data.text.detokenise import detokenise
from elman.data.text.raw import split_raw
from elman.data.text.subwords import Subwords
from elman.data.text.word_starts import word_starts


@dataclass(frozen=True)
class Tokeniser:
    """The tokens of a line, the text of tokens, and where words begin.

    Attributes:
        options: the rules.
        subwords: the trained model where `options.tokenisation` is `subwords`.

    """

    options: TextOptions
    subwords: Subwords | None = None

    def encode(self, text: str) -> list[str]:
        """The tokens of one line of text without its break; no `<eos>`."""
        return tokenise(text, self.options, self.subwords)

    def decode(self, tokens: Iterable[str]) -> str:
        """The text of tokens; `<eos>` is a line break. Exact where tokens spell the text."""
        return detokenise(tokens, self.options)

    def text(self, tokens: Sequence[str]) -> str:
        """Tokens as they are told in a row: exact where they spell the text, else with spaces between."""
        return self.decode(tokens) if self.options.spelt else " ".join(tokens)

    def word_starts(self, tokens: Sequence[str]) -> list[bool]:
        """Which tokens begin a word (`elman.data.text.word_starts`); a word's surprisal is the sum of its tokens'."""
        return word_starts(tokens, self.options)


def tokenise(text: str, options: TextOptions, subwords: Subwords | None = None) -> list[str]:
    """The tokens of one line of text, without `<eos>`."""
    match options.tokenisation:
        case "words":
            words = text.split()
        case "raw":
            words = split_raw(text)
        case "characters":
            words = list(text)
        case "bytes":
            return bytewise.spell(text.lower() if options.lowercase else text)
        case "subwords":
            assert subwords is not None, "subwords come with their model"
            return subwords.encode(text.lower() if options.lowercase else text)
    return fold(words) if options.lowercase else words


def fold(words: Iterable[str]) -> list[str]:
    """The words in small letters."""
    return [word.lower() for word in words]
