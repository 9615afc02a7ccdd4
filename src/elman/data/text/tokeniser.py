"""Text to tokens and back: the rules that split, the inverse that writes readable text, and where words begin."""

import codecs
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import regex

from elman.config.text import TextOptions
from elman.data.lines import fields
from elman.data.text import patterns
from elman.data.text.utf8 import from_bytes, is_byte, piece_bytes, readable, spell, to_bytes
from elman.data.text.vocabulary import EOS

if TYPE_CHECKING:
    from elman.data.text.subwords import Subwords

APOSTROPHE = "\u2019"

DASH, GREEK_COLON = "—", "\u00b7"
TIGHT = frozenset(["--", "---", DASH, "/", "\u1361"])
"""Marks without a space on both sides; but scripts other than Latin have spaces around dashes."""
QUOTES = {
    **{'"': '"', "'": "'", "\u201e": "", "\u201a": "", "\u201c": "\u201e\u201d", "\u2018": "\u201a"},
    **{"\u201d": "\u201c\u201e\u201d", APOSTROPHE: "\u2018\u201a", "\u00ab": "\u00bb", "\u00bb": "\u00ab\u00bb"},
    **{"\u2039": "\u203a", "\u203a": "\u2039\u203a"},
}
"""Quotation marks, and which of those that are open each closes; where none is open it opens."""
CLOSING = frozenset("\u201d\u00bb\u203a")
"""Those that mostly close: after a mark that ends a phrase they do even where none is open."""
_TIGHT_BEFORE = regex.compile(patterns.TIGHT_BEFORE)
_TIGHT_AFTER = (regex.compile(patterns.TIGHT_AFTER), regex.compile(patterns.TIGHT_AFTER_ELIDED))
_SENTENCE_END, _PARTS = regex.compile(patterns.SENTENCE_ENDS), regex.compile(patterns.PARTS)
_CURRENCY, _DIGIT_LAST = regex.compile(patterns.CURRENCY), regex.compile(patterns.DIGIT_LAST)
_LATIN, _OTHER_LETTER = regex.compile(patterns.LATIN), regex.compile(patterns.OTHER_LETTER)
_RUN = 8


@dataclass(frozen=True)
class Tokeniser:
    """The tokens of a line, and the text of tokens; subwords need their trained model."""

    options: TextOptions
    subwords: "Subwords | None" = None

    def encode(self, text: str) -> list[str]:
        """The tokens of one line of text without its break; no `<eos>`."""
        options = self.options
        match options.tokenisation:
            case "words":
                words = fields(text)
            case "raw":
                words = split_raw(text, elisions=options.elisions)
            case "characters":
                words = patterns.characters_of(text)
            case "bytes":
                return spell(text.lower() if options.lowercase else text)
            case "subwords":
                assert self.subwords is not None, "tokenisation into subwords needs their model"
                return self.subwords.encode(text.lower() if options.lowercase else text)
        return fold(words) if options.lowercase else words

    def parts(self, text: str) -> list[str]:
        """What is separated in a line: of `words` by blanks of ASCII, else by all white space of Unicode."""
        if self.options.tokenisation == "words":
            return fields(text)
        return _PARTS.findall(text) if self.options.tokenisation == "raw" and "\u202f" in text else text.split()

    def decode(self, tokens: Iterable[str]) -> str:
        """The text of tokens; `<eos>` is a line break. Exact where tokens spell the text."""
        return detokenise(tokens, self.options)

    def text(self, tokens: Sequence[str]) -> str:
        """Tokens in a row: exact where they spell the text, otherwise with spaces between them."""
        return self.decode(tokens) if self.options.spelt else " ".join(tokens)


def fold(words: Iterable[str]) -> list[str]:
    return [word.lower() for word in words]


def split_raw(text: str, *, elisions: bool = False) -> list[str]:
    """Tokenise ordinary text.

    A token is, in this order of preference:

    1. `<unk>`;
    2. a word with an apostrophe before or after it from a closed list: 'tis, 'twas, 'twere, 'twill, 'twould,
       'twixt, 'tween, 'gainst, 'mongst, 'scape, 'em, 'gan, 'gins, 'cause; th', o', i', ha', wi', t';
    3. a number with inner points, commas, colons or slashes, and with a suffix behind an apostrophe or of another
       script than Latin: 3.14, 1,000, 12:30'da;
    4. a word: letters, digits and underscores of any script with their marks, vowel signs, selectors, joiners and soft
       hyphens, and with inner single apostrophes and hyphens: o'er, well-beloved, col·lapse, צה״ל;
    5. two or more hyphens, or two or more points, in a row;
    6. an emoji of one or more code points, or a flag;
    7. any other single mark, with the combining marks that follow it.

    With `elisions` an apostrophe before a letter ends a word, as in French and Italian: l' homme, dell' arte; only
    aujourd'hui and words that begin with prud'hom stay whole. Words that an apostrophe follows are then none.

    White space only separates; the narrow space (U+202F) belongs to the word before Mongolian suffixes and between
    thousands. `Detokeniser` is the inverse. Scripts without spaces between words should be read as
    characters or subwords, or be tokenised by a tool for their language and read as `words`.

    >>> split_raw("'Tis he--the King's son, well-beloved!")
    ["'Tis", 'he', '--', 'the', "King's", 'son', ',', 'well-beloved', '!']
    """
    return patterns.words_of(text, elisions=elisions)


class Detokeniser:
    """The inverse of tokenisation, for a stream of words: `add` gives the text to append for the next word.

    For `raw` text: no space before , . ; : ! ? ) ] } and after ( [ {, nor at such marks of other scripts, none around
    dashes beside Latin letters, quotation marks open and close in pairs, also „so“, »so« and ”so”, a sign of currency
    belongs to a number before it or the one after it, and where leaving out a space would change the tokens there is
    one. With `lowercase`, sentences and lines begin with a capital, and so does the English word I. `<eos>` is a line
    break, with `eos = "paragraph"` a blank line. Words of pre-tokenised text are joined by spaces, characters by
    nothing.

    In raw text, tokenising the result gives the same tokens again (folded to lower case under `lowercase`), except
    that three or more `<eos>` in a row are two and those at the very beginning are none.
    """

    def __init__(self, options: TextOptions) -> None:
        self._options = options
        self._tight_after = _TIGHT_AFTER[options.elisions]
        self._break = "\n\n" if options.eos == "paragraph" else "\n"
        self._bytes = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._run: list[str] = []
        self._open: set[str] = set()
        self._tight = True
        self._sentence_start = True
        self._line_start = True
        self._other_letters = self._after_dash = False

    def add(self, word: str) -> str:
        """The text that `word` adds, with the space or line break that belongs before it."""
        if word == EOS:
            return self._end_line() if not self._options.spelt else self.end() + self._break
        self._line_start = False
        match self._options.tokenisation:
            case "characters":
                return word
            case "bytes" | "subwords":
                return self._bytes.decode(piece_bytes(word))
            case "words":
                space = "" if self._tight else " "
                self._tight = False
                return space + word
            case "raw":
                return self._add_raw(word)

    def end(self) -> str:
        """The text of bytes that never became a character."""
        return self._bytes.decode(b"", final=True)

    def _end_line(self) -> str:
        if self._line_start:
            self._open.clear()
        self._run, self._tight, self._sentence_start, self._line_start = [], True, True, True
        return self._break

    def _add_raw(self, word: str) -> str:
        before, after = self._tightness(word)
        text = self._capitalised(word) if self._options.lowercase else word
        joined = [*self._run, text]
        elided = self._options.elisions and len(text) > 1 and text[-1] in ("'", APOSTROPHE)
        whole = [*joined, "a"] if elided else joined  # what follows decides
        glued = (
            (self._tight or before)
            and not self._is_spaced_dash(word, tight=before)
            and split_raw("".join(whole), elisions=self._options.elisions) == whole
        )
        space = "" if glued or not self._run else " "
        self._run = joined[-_RUN:] if glued else [text]
        self._tight, self._after_dash = after, word == DASH
        if _OTHER_LETTER.search(word) or _LATIN.search(word):
            self._other_letters = _LATIN.search(word) is None
        return space + text

    def _is_spaced_dash(self, word: str, *, tight: bool) -> bool:
        """Whether there is a space before the word since it, or what precedes it, is a dash beside other letters."""
        if word == DASH:
            return self._other_letters and not self._tight
        if not self._after_dash or tight or _LATIN.search(word):
            return False
        return self._other_letters or _OTHER_LETTER.search(word) is not None

    def _tightness(self, word: str) -> tuple[bool, bool]:
        """Whether the word takes no space before it, and none after it."""
        if word in TIGHT:
            return True, True
        last = self._run[-1] if self._run else ""
        if _CURRENCY.fullmatch(word):
            return False, _DIGIT_LAST.fullmatch(last) is None
        if word not in QUOTES:
            before = _TIGHT_BEFORE.fullmatch(word) is not None or (word == GREEK_COLON and self._other_letters)
            return before, self._tight_after.fullmatch(word) is not None
        if opened := next((mark for mark in QUOTES[word] if mark in self._open), None):
            self._open.remove(opened)
            return True, False
        ends = word in CLOSING and last != ":" and _TIGHT_BEFORE.fullmatch(last) is not None
        if ends or word == APOSTROPHE or (word == "'" and last.endswith("s")):
            return True, False
        self._open.add(word)
        return False, True

    def _capitalised(self, word: str) -> str:
        starts, letters = self._sentence_start, any(character.isalnum() for character in word)
        self._sentence_start = _SENTENCE_END.fullmatch(word) is not None or (starts and not letters)
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
    return "".join(map(detokeniser.add, words)) + detokeniser.end()


def shown(words: Iterable[str], options: TextOptions) -> str:
    """As `detokenise`, for display: bytes that are not UTF-8 are U+FFFD."""
    return readable(detokenise(words, options))


def word_starts(tokens: Sequence[str], options: TextOptions) -> list[bool]:
    """Whether each token of a sentence begins a word, [n]; the first always does.

    Where tokens are words, `<eos>` among them, each does. Characters and bytes: a word extends to the next one, so the
    white space or the `<eos>` that ends it belongs to it, and counts in its surprisal; white space at the beginning of
    a sentence belongs to the first word. (The boundary has to be counted for the probabilities of words to sum to one:
    Pimentel & Meister 2024; Oh & Schuler 2024.) Subwords carry their white space in front: there a piece that begins
    with white space and holds more than that begins a word, and the end of the word before it has to be divided from it
    (`elman.evaluation.word_ends`).

    Example:
        >>> word_starts([*"to be", "<eos>"], TextOptions(tokenisation="characters"))
        [True, False, False, True, False, False]
    """
    if not options.spelt:
        return [True] * len(tokens)
    starts, between, found = [], True, False
    for index, (token, text) in enumerate(zip(tokens, texts_of(tokens, options), strict=True)):
        boundary = token == EOS or text.isspace()
        starts.append(index == 0 or (found and not boundary and (between or text[:1].isspace())))
        found, between = found or not boundary, boundary or text[-1:].isspace()
    return starts


def texts_of(tokens: Sequence[str], options: TextOptions) -> list[str]:
    r"""The text of each token of a text that is spelt; each byte of white space beyond ASCII is a space.

    Example:
        >>> texts_of(["a", "<0xC2>", "<0xA0>", "<0xC3>"], TextOptions(tokenisation="bytes"))
        ['a', ' ', ' ', '\udcc3']
    """
    texts, at = [_text_of(token, options) for token in tokens], 0
    for single, run in itertools.groupby(tokens if options.open_vocabulary else (), is_byte):
        found = list(run)
        for character in from_bytes(b"".join(map(piece_bytes, found))) if single else ():
            size = len(to_bytes(character))
            if character.isspace():
                texts[at : at + size] = " " * size
            at += size
        at += 0 if single else len(found)
    return texts


def ends_word(token: str, options: TextOptions) -> bool:
    """Whether a token that follows the letters of a word ends it: `<eos>`, or what begins with white space.

    Example:
        >>> [ends_word(token, TextOptions(tokenisation="subwords")) for token in ("s", "\u2581the", "<eos>")]
        [False, True, True]
    """
    return not options.spelt or token == EOS or begins_with_space(token, options)


def begins_with_space(token: str, options: TextOptions) -> bool:
    """Whether a token that spells begins with white space; `<eos>` does not."""
    return token != EOS and _text_of(token, options)[:1].isspace()


def is_space(token: str, options: TextOptions) -> bool:
    """Whether a token that spells is nothing but white space; `<eos>` is not."""
    return token != EOS and _text_of(token, options).isspace()


def _text_of(token: str, options: TextOptions) -> str:
    return token if options.tokenisation == "characters" else from_bytes(piece_bytes(token))


def word_slices(starts: Sequence[bool]) -> list[slice]:
    """The tokens of each word: together all of them, in order."""
    edges = [index for index, begins in enumerate(starts) if begins] + [len(starts)]
    return [slice(begin, end) for begin, end in itertools.pairwise(edges)]


def spelt(tokens: Sequence[str], options: TextOptions) -> str:
    """The word that tokens spell, without its boundary; a boundary alone is itself, as `<eos>` is."""
    inner = [token for token in tokens if token != EOS]
    joined = options.tokenisation == "characters"
    text = "".join(inner) if joined else from_bytes(b"".join(map(piece_bytes, inner)))
    return text.strip() or (EOS if EOS in tokens else " ")
