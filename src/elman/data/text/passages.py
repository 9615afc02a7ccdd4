"""Lines to tokens, streaming: what is removed from a line, where `<eos>` stands, and what is counted."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import regex

from elman.config.text import TextOptions
from elman.data.text.files import Files
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.utf8 import Line, from_bytes, piece_bytes, read_lines, to_bytes
from elman.data.text.vocabulary import EOS, Vocabulary
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.data.text.subwords import Subwords

LONGEST_WORD, LONGEST_WITH_MARKS = 8, 12
"""Letters that a word has at most, rare ones apart, in a script without spaces; more between spaces are a clause.

And letters with their marks, of which Burmese and Khmer have many.

In Japanese that a tool has cut into words (50,000 sentences) 0.02 % of the characters stand in longer words; in the
same sentences without their spaces 83 % stand in longer clauses, in a novel 87 %.
"""

LARGEST_SHARE = 0.1
"""Share of the characters of a text that may stand in such clauses, as quotations do. In Japanese articles full of
formulas and English terms 15 to 28 % do."""

_NOTE = re.compile(r"［＃[^［］]*］")  # noqa: RUF001 - the marks are full-width
_RUBY = re.compile(r"《[^《》]*》")
_UNSPACED = re.compile(
    r"(?![\W\d_])["  # a letter, that is no mark, digit or punctuation
    r"\u0e00-\u0fff"  # Thai, Lao, Tibetan
    r"\u1000-\u109f"  # Burmese
    r"\u1780-\u17ff"  # Khmer
    r"\u1950-\u19df\u1a20-\u1aaf\uaa60-\uaadf"  # the Tai scripts, more Burmese
    r"\u1b00-\u1b7f\ua980-\ua9df"  # Balinese, Javanese
    r"\u3005-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana, their half width, the mark of repetition
    r"\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
    r"]"
)
_MARKS = regex.compile(r"\p{M}")


class Passage(NamedTuple):
    """The tokens of one line, with `<eos>` where the rule puts one.

    Attributes:
        characters: how many characters of text the tokens stand for: white space in a row is one space, and
            every line break that counts (as `<eos>` or as a space) is one character. Where tokens spell the text
            all its code points count, and a byte that is not UTF-8 is one.
        num_bytes: the bytes of these characters in UTF-8.
        num_words: the words, a line end being one: the tokens where they are words, otherwise what white space
            separates.
        unseparated: letters that stand in clauses without spaces (see `unseparated`).
        closed: whether a sentence ends here, so that what follows is another one.
        line: the line as it was cleaned.
    """

    words: list[str]
    characters: int
    num_bytes: int
    num_words: int
    unseparated: int
    closed: bool
    line: Line


def passages(
    lines: Iterable[Line], options: TextOptions, subwords: "Subwords | None" = None, *, ends: bool = True
) -> Iterator[Passage]:
    """Clean and tokenise lines and put `<eos>` as `options.eos` requires; `subwords` is the model of subwords.

    `ends`: the text ends with these lines; otherwise a line that is not blank follows.

    `line`: `<eos>` ends every line. A blank line is one `<eos>`; in `raw` text blank lines in a row are one `<eos>`,
        and those before the first word are none.
    `paragraph`: `<eos>` ends every block of lines between blank lines; blank lines are nothing themselves.
    `none`: blank lines are nothing, and where tokens spell the text every other line break is a space.
    `exact`: `<eos>` is a line feed, and a carriage return before it is a character like any other.
    """
    cleaned = (line._replace(text=clean(line.text, options)) for line in lines)
    tokeniser = Tokeniser(options, subwords)
    if options.eos == "exact":
        for line in cleaned:
            yield _passage(line, tokeniser, closes=line.text.endswith("\n"))
    elif options.eos == "paragraph":
        held, ended = None, True
        for line in cleaned:
            blank, ended = ended and line.ended and not line.text.strip(), line.ended
            if held is not None:
                yield _passage(held, tokeniser, closes=blank)
            held = None if blank else line
        if held is not None:
            yield _passage(held, tokeniser, closes=ends)
    else:
        keep_every_blank = options.eos == "line" and options.tokenisation != "raw"
        keep_blank, whole = keep_every_blank, True
        for line in cleaned:
            blank = whole and line.ended and not line.text.strip()
            if not blank or keep_blank:
                yield _passage(line, tokeniser, closes=options.eos == "line" and line.ended)
            keep_blank = keep_every_blank or (options.eos == "line" and not blank)
            whole = line.ended


class TokenCounts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one token contributes to the counts of its text (`Passage`); `unknown` is 1 if the vocabulary lacks it."""

    unknown: int = 0
    characters: int = 1
    num_bytes: int = 1
    num_words: int = 1


def first_token(found: Iterable[Passage], options: TextOptions, vocabulary: Vocabulary) -> TokenCounts:
    """What the first token of a text contributes, which has one; the space after a word is not its own.

    A character counts with the byte or piece that begins it, and a word that is spelt with its last token.
    """
    passage = next(one for one in found if one.words)
    token = passage.words[0]
    if token == EOS:
        return TokenCounts()
    unknown = int(token not in vocabulary.ids)
    data = piece_bytes(token) if options.open_vocabulary else to_bytes(token)
    rest = from_bytes(to_bytes(passage.line.text)[len(data) :])
    num_words = len(passage.line.text.split()) - len(rest.split()) if options.spelt else 1
    return TokenCounts(unknown=unknown, characters=len(from_bytes(data)), num_bytes=len(data), num_words=num_words)


def only_blank_lines(files: Files, start: int, stop: int | None) -> UserError:
    part = "" if stop is None else f" between bytes {start} and {stop}"
    return UserError(f"{files.name}: only blank lines{part}; give a text of at least two different words")


def stop_after(
    count: int, source: Files | Path, options: TextOptions, start: int = 0, stop: int | None = None
) -> int | None:
    """The offset of the byte after the line, or paragraph, in which `count` tokens are reached; `stop` if none is."""
    by_paragraph, total = options.eos == "paragraph", 0
    for passage in passages(read_lines(source, start, stop, options), options):
        total += len(passage.words)
        if total >= count and (passage.closed if by_paragraph else passage.line.ended or options.eos == "none"):
            return passage.line.stop
    return stop


def clean(text: str, options: TextOptions) -> str:
    """The line without what `options.ruby` removes, in the normal form of `options.normalisation`."""
    if options.ruby == "remove":
        text = remove_ruby(text)
    return text if options.normalisation == "none" else unicodedata.normalize(options.normalisation, text)


def is_blank(line: bytes, options: TextOptions) -> bool:
    """Whether a line, or the beginning of a long one, is blank as it is read; white space beyond ASCII counts too."""
    return not clean(line.decode(errors="replace"), options).strip()


def remove_ruby(text: str) -> str:
    """Remove the marks of Aozora Bunko: readings 《...》, the bar ｜ before the annotated word, notes ［＃...］.

    Notes within notes are removed too. A character without a code is ※ with a note; the ※ stays. A mark that is not
    closed on its own line is not a mark, and white space is left as it is.

    >>> remove_ruby("一番｜獰悪《どうあく》な種族［＃「種族」に傍点］")
    '一番獰悪な種族'
    """
    while (shorter := _NOTE.sub("", text)) != text:
        text = shorter
    return _RUBY.sub("", text).replace("｜", "")  # noqa: RUF001


def unseparated(text: str) -> int:
    """How many letters stand in clauses without spaces, as in Japanese, Chinese, Thai, Lao, Khmer, Burmese, Tibetan.

    Example:
        >>> unseparated("吾輩 は 猫 で ある 。 I am a cat"), unseparated("吾輩は猫である。名前はまだ無い。")
        (0, 14)
    """
    if text.isascii():
        return 0
    counts = ((len(_UNSPACED.findall(part)), part) for part in text.split() if not part.isascii())
    return sum(
        count
        for count, part in counts
        if count > LONGEST_WORD or (count and count + len(_MARKS.findall(part)) > LONGEST_WITH_MARKS)
    )


def is_unspaced(character: str) -> bool:
    return _UNSPACED.match(character) is not None


def has_words(unseparated: int, characters: int) -> bool:
    """Whether the spaces of a text separate words, so that figures per word are meaningful."""
    return unseparated <= LARGEST_SHARE * characters


def _passage(line: Line, tokeniser: Tokeniser, *, closes: bool) -> Passage:
    options, text = tokeniser.options, line.text
    if not options.spelt:
        words, text = tokeniser.encode(text) + [EOS] * closes, " ".join(tokeniser.parts(text))
        return Passage(words, len(text) + 1, len(to_bytes(text)) + 1, len(words), unseparated(text), closes, line)
    text = text.removesuffix("\n")
    if options.eos != "exact":
        text = text.removesuffix("\r")
        text = text if text == line.text or closes else f"{text} "
    words, num_words = tokeniser.encode(text) + [EOS] * closes, len(text.split()) + closes
    num_bytes = len(to_bytes(text)) + closes
    return Passage(words, len(text) + closes, num_bytes, num_words, unseparated(text), closes, line)
