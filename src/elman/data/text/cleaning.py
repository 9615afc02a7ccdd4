"""What is taken out of a line, or written otherwise, before it is tokenised."""

import re
import unicodedata

from elman.config.text import TextOptions

_NOTE = re.compile(r"［＃[^［］]*］")  # noqa: RUF001 - the marks are full-width
_READING = re.compile(r"《[^《》]*》")


def clean(text: str, options: TextOptions) -> str:
    """The line without what `options.ruby` removes, in the normal form of `options.normalisation`."""
    if options.ruby == "remove":
        text = remove_ruby(text)
    return text if options.normalisation == "none" else unicodedata.normalize(options.normalisation, text)


def remove_ruby(text: str) -> str:
    """Take out the marks of Aozora Bunko: readings 《...》, the bar ｜ before what is read, notes ［＃...］.

    Notes within notes go too. A character that no code stands for is ※ with a note; the ※ stays. A mark is closed on
    its own line or is not one, and white space is left as it is.

    >>> remove_ruby("一番｜獰悪《どうあく》な種族［＃「種族」に傍点］")
    '一番獰悪な種族'
    """
    while (shorter := _NOTE.sub("", text)) != text:
        text = shorter
    return _READING.sub("", text).replace("｜", "")  # noqa: RUF001
