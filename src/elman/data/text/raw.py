"""The rule that splits ordinary text into words and marks."""

import re

_LEADING = "tis|twas|twere|twill|twould|twixt|tween|gainst|mongst|scape|em|gan|gins|cause"
_TRAILING = "th|o|i|ha|wi|t"

_LETTER = r"[\w\u0300-\u036f]"
_APOSTROPHE = r"['\u2019]"

_RAW = re.compile(
    rf"""
      <unk>                                                           # stands for an unknown word
    | (?<!\w) {_APOSTROPHE} (?ai:{_LEADING}) (?!{_LETTER})             # 'tis 'twas 'gainst
    | (?<!\w) (?ai:{_TRAILING}) {_APOSTROPHE} (?!{_LETTER})            # th' o' i'
    | \d+ (?:[.,:/]\d+)+ (?!{_LETTER})                                # 3.14  1,000  12:30
    | {_LETTER}+ (?: (?:[-\u2011]|{_APOSTROPHE}) {_LETTER}+ )*         # well-beloved  o'er
    | -{{2,}} | \.{{2,}}                                              # dashes or points in a row
    | \S                                                              # any other mark
    """,
    re.VERBOSE,
)


def split_raw(text: str) -> list[str]:
    """Tokenise ordinary text.

    A token is, in this order of preference:

    1. `<unk>`;
    2. a word with an apostrophe before or after it from a closed list: 'tis, 'twas, 'twere, 'twill, 'twould,
       'twixt, 'tween, 'gainst, 'mongst, 'scape, 'em, 'gan, 'gins, 'cause; th', o', i', ha', wi', t';
    3. a number with inner points, commas, colons or slashes: 3.14, 1,000, 12:30;
    4. a word: letters, digits, underscores and combining accents, with inner single apostrophes and hyphens:
       o'er, well-beloved;
    5. two or more hyphens, or two or more points, in a row;
    6. any other single mark.

    White space only separates. `elman.data.text.detokenise` is the inverse. Scripts that do not put spaces between
    words, or that need combining vowel signs, should be tokenised by a tool for their language and read as
    `words`.

    >>> split_raw("'Tis he--the King's son, well-beloved!")
    ["'Tis", 'he', '--', 'the', "King's", 'son', ',', 'well-beloved', '!']
    """
    return _RAW.findall(text)
