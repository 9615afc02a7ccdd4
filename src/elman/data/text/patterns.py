r"""What a letter, a word, a mark, a character and the end of a sentence are in every script, by Unicode's properties.

The patterns are written in what the package `regex` and ECMAScript with the flag `u` have in common, so that each
stands once: Python compiles them here, and the page gets them as data (`elman.data.text.portable`).
"""

import functools
import re
from typing import cast

import regex

LEADING = "tis|twas|twere|twill|twould|twixt|tween|gainst|mongst|scape|em|gan|gins|cause"
TRAILING = "th|o|i|ha|wi|t"  # words that an apostrophe precedes or follows


@functools.cache
def white_space() -> str:
    """What `str.isspace` takes for white space, within brackets of a pattern."""
    found = [code for code in range(0x10000) if chr(code).isspace()]
    starts = [code for code in found if code - 1 not in found]
    stops = [code for code in found if code + 1 not in found]
    return "".join(f"\\u{start:04x}-\\u{stop:04x}" for start, stop in zip(starts, stops, strict=True))


def _any_case(words: str) -> str:
    return re.sub("[a-z]", lambda letter: f"[{letter[0]}{letter[0].upper()}]", words)


SPACE = white_space()
END = r"(?![\s\S])"
LETTERS = r"\p{L}\p{N}"
_WORD = rf"[{LETTERS}_]"
_NUMBER_SIGNS = "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
"""Signs that stand before and around digits and letters, as the Arabic sign of a year does."""
_JOINERS = "\u00ad\u055b\u055c\u055e\u180e\u200c\u200d\u2060-\u2064\ufeff"
"""The soft hyphen, the joiners and what else is invisible within words, apart from what sets their direction.

And the Armenian marks of emphasis, exclamation and question, which stand on a vowel.
"""
_EXTENDING = rf"\p{{M}}\u200c\u200d\p{{Emoji_Modifier}}{chr(0xE0020)}-{chr(0xE007F)}"
"""Marks, selectors, joiners, tones of skin and tags: they belong to the character before them."""
_LETTER = rf"[{LETTERS}_{_EXTENDING}{_JOINERS}{_NUMBER_SIGNS}]"
LATIN = r"[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]"
OTHER_LETTER = rf"(?!{LATIN})[\p{{L}}]"
_BEGIN = rf"[{LETTERS}_{_NUMBER_SIGNS}]"
_APOSTROPHE = "['\u2019]"
_HEBREW = '(?<=[\u0591-\u05bd\u05bf\u05c1-\u05ea])"(?=[\u05d0-\u05ea])'
_HYPHEN = f"(?:[-\u2010\u2011\u058a\u05be\u00b7\u2027\u05f3\u05f4]|{_HEBREW})"
"""Hyphens within words, the Catalan point of l\u00b7l, and the marks of Hebrew abbreviations (UAX 29, WB6 to WB7c)."""
_NARROW = r"(?:(?<=[\u1820-\u18aa\u180b-\u180d\u180f])\u202f(?=[\u1820-\u18aa])|(?<=[\p{Nd}])\u202f(?=[\p{Nd}]{3}))"
"""The narrow space before Mongolian suffixes and between thousands, which does not end a word (UAX 29)."""
_INNER = rf"(?:(?:{_HYPHEN}|{_APOSTROPHE}|{_NARROW}){_BEGIN}{_LETTER}*)*"
_EMOJI = (
    rf"[\p{{Extended_Pictographic}}][{_EXTENDING}]*(?:(?<=\u200d)[\p{{Extended_Pictographic}}][{_EXTENDING}]*)*"
    rf"|[\p{{Regional_Indicator}}]{{2}}[{_EXTENDING}]*"
)
_MARKED = rf"(?![{_EXTENDING}])"

_TRAILED = rf"(?<!{_WORD})(?:{_any_case(TRAILING)}){_APOSTROPHE}(?!{_LETTER})"

WORDS = "|".join(
    [
        rf"<unk>{_MARKED}",  # stands for an unknown word
        rf"(?<!{_WORD}){_APOSTROPHE}(?:{_any_case(LEADING)})(?!{_LETTER})",  # 'tis 'twas 'gainst
        _TRAILED,  # th' o' i'
        rf"[\p{{Nd}}]+(?:(?:[.,:/]|{_NARROW})[\p{{Nd}}]+)+(?:(?:{_APOSTROPHE}{_BEGIN}|{OTHER_LETTER}){_LETTER}*|(?!{_LETTER}))",
        # 3.14  1,000  12:30'da  5:30ന്
        rf"{_BEGIN}{_LETTER}*{_INNER}",  # well-beloved  o'er
        rf"-{{2,}}{_MARKED}|\.{{2,}}{_MARKED}",  # dashes or points in a row
        _EMOJI,
        rf"[^{SPACE}][{_EXTENDING}]*",  # any other mark
    ]
)
"""The tokens of ordinary text (`elman.data.text.tokeniser.split_raw`)."""

_ELIDED = rf"(?:(?:{_HYPHEN}|{_NARROW}){_BEGIN}{_LETTER}*)*(?:{_APOSTROPHE}(?={_BEGIN}))?"
_WHOLE = rf"(?<!{_WORD})(?:[aA]ujourd{_APOSTROPHE}hui|[pP]rud{_APOSTROPHE}hom{_LETTER}+)"
WORDS_ELIDED = f"{_WHOLE}|{WORDS.replace(_INNER, _ELIDED).replace(f'{_TRAILED}|', '')}"
"""As `WORDS`, where an apostrophe before a letter ends a word: l' homme, dell' arte, but aujourd'hui."""

CHARACTERS = "|".join(
    [
        "[\u1100-\u115f\ua960-\ua97c]*[\u1160-\u11a7\ud7b0-\ud7c6]+[\u11a8-\u11ff\ud7cb-\ud7fb]*"
        rf"[{_EXTENDING}]*",  # a syllable of Hangul in its letters
        _EMOJI,
        rf"[\s\S][{_EXTENDING}]*",
    ]
)
"""Characters as a reader sees them: a letter with its marks, an emoji of several code points."""

_COMBINING = rf"[{_EXTENDING}\u1160-\u11ff\ud7b0-\ud7fb]|\p{{Regional_Indicator}}"

PARTS = rf"(?:[^{SPACE}]|{_NARROW})+"  # what white space separates in ordinary text
TIGHT_BEFORE = r"[\p{Terminal_Punctuation}\p{Pe}%\u2026\u055d]|\.{2,3}"
TIGHT_AFTER = r"[\p{Ps}#@\u00bf\u00a1]"
TIGHT_AFTER_ELIDED = rf"{TIGHT_AFTER}|[\s\S]*{_LETTER}{_APOSTROPHE}"
"""Marks without a space before them, and after them."""
CURRENCY = r"[\p{Sc}]"
DIGIT_LAST = r"[\s\S]*[\p{Nd}]"

SENTENCE_ENDS = r"\p{Sentence_Terminal}"
_SHAD = "\u0f0d-\u0f12"  # the ends of phrases in Tibetan, which Unicode does not count as ends of sentences
_CLOSING = r"""["'\p{Pe}\p{Pf}\p{Pi}]*"""
_TEXT_END = (
    rf"[\p{{Sentence_Terminal}}\u2026{_SHAD}]+{_CLOSING}[{SPACE}]"
    rf"|(?:(?![.!?])[\p{{Sentence_Terminal}}{_SHAD}])+[\p{{Pe}}\p{{Pf}}]*"
    rf"[^\p{{Sentence_Terminal}}{_SHAD}\p{{Pe}}\p{{Pf}}]"
)

_ASCII = {"L": "A-Za-z", "N": "0-9", "Nd": "0-9"}  # what the properties are in ASCII, where none other of them occurs

_ascii_words = [
    re.compile(re.sub(r"\\p{(\w+)}", lambda name: _ASCII.get(name[1], "\u200d"), words))
    for words in (WORDS, WORDS_ELIDED)
]
_words, _characters = (regex.compile(WORDS), regex.compile(WORDS_ELIDED)), regex.compile(CHARACTERS)
_combining, _text_end = regex.compile(_COMBINING), regex.compile(_TEXT_END)


def words_of(text: str, *, elisions: bool = False) -> list[str]:
    """The tokens of ordinary text; of ASCII by the same pattern in the standard library, which takes half the time."""
    if text.isascii():
        return _ascii_words[elisions].findall(text)
    return cast("list[str]", _words[elisions].findall(text))


def characters_of(text: str) -> list[str]:
    """The characters of a text as a reader sees them: together they are the text.

    Marks, selectors, joiners and tones of skin belong to what they follow, a pair of regional indicators is a flag.

    >>> characters_of("ne\u0301\U0001f1ef\U0001f1f5")
    ['n', 'e\u0301', '\U0001f1ef\U0001f1f5']
    """
    if text.isascii() or not _combining.search(text):
        return list(text)
    return cast("list[str]", _characters.findall(text))


def sentence_end(text: str) -> int | None:
    """The place of what follows the first sentence of a text, if it ends in it.

    It ends with a final mark, and the quotation marks and brackets behind it, before white space; with a mark beyond
    ASCII, as scripts without spaces have them, before anything else.

    >>> sentence_end("Yes. No."), sentence_end("No."), sentence_end("\u306f\u3044\u3002\u5426")
    (4, None, 3)
    """
    found = _text_end.search(text)
    return None if found is None else found.end() - 1


ENDED = {"paragraph": rf"\n(?:(?!\n)[{SPACE}])*\n[{SPACE}]*{END}", "exact": ""}
FEED = rf"\n{END}"
"""What the last paragraph, or line, of a text that is ended has at its end."""
