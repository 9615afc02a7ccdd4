"""The rules by which text is read and written, as data that a program in another language interprets (JSON).

Patterns are written for ECMAScript with the flag `u`.
"""

import functools
import re
from typing import Any

from elman.config.text import TextOptions
from elman.data.text.passages import _NOTE, _RUBY
from elman.data.text.subwords import SPACE
from elman.data.text.tokeniser import (
    _MARKS,
    _RAW,
    _RUN,
    _SENTENCE_END,
    APOSTROPHE,
    TIGHT,
    TIGHT_AFTER,
    TIGHT_BEFORE,
)
from elman.data.text.utf8 import BYTES
from elman.data.text.vocabulary import EOS, UNK

_ENDED = {"paragraph": re.compile(r"\n(?:(?!\n)\s)*\n\s*\Z"), "exact": re.compile("")}
_FEED = re.compile(r"\n\Z")


def is_ended(text: str, options: TextOptions) -> bool:
    """Whether the last line, or paragraph, of a text has its end."""
    return _ENDED.get(options.eos, _FEED).search(text) is not None


def portable_rules(options: TextOptions) -> dict[str, Any]:
    """What reads and writes text as `options` do; `<eos>`, words and subwords are those of the vocabulary.

    A line is cleaned (`removed`: patterns, and whether until none is left; `normalisation`), passed on or dropped
    (`blank`), and ends a sentence (`closed`) with `<eos>`. `token` finds the tokens of a part of a line that `part`
    finds; where `bytes` are named, tokens are bytes or subwords.
    """
    removed = [(ecmascript(_NOTE), True), (ecmascript(_RUBY), False), ("\uff5c", False)]
    names = list(BYTES) if options.tokenisation == "bytes" else [f"<0x{value:02X}>" for value in range(256)]
    every_line = options.eos == "line" and options.tokenisation != "raw"
    return {
        "tokenisation": options.tokenisation,
        "spelt": options.spelt,
        "lowercase": options.lowercase,
        "eos": EOS,
        "unk": UNK,
        "removed": removed if options.ruby == "remove" else [],
        "normalisation": None if options.normalisation == "none" else options.normalisation,
        "blank": "kept" if options.eos == "exact" or every_line else "once" if options.eos == "line" else "dropped",
        "closed": {"line": "line", "paragraph": "paragraph", "exact": "feed"}.get(options.eos, "never"),
        "whole": options.eos in ("none", "exact"),
        "returns": options.eos == "exact",
        "ended": ecmascript(_ENDED.get(options.eos, _FEED)),
        "space": white_space(),
        "part": ecmascript(re.compile(r"\S+")),
        "token": ecmascript(_RAW) if options.tokenisation == "raw" else "[^]+",
        "bytes": names if options.open_vocabulary else None,
        "marker": SPACE,
        "break": "\n\n" if options.eos == "paragraph" else "\n",
        "letter": ecmascript(re.compile(r"(?!_)\w")),
        "tight_before": sorted(TIGHT_BEFORE),
        "tight_after": sorted(TIGHT_AFTER),
        "tight": sorted(TIGHT),
        "marks": sorted(_MARKS),
        "apostrophes": ["'", APOSTROPHE],
        "sentence_ends": sorted(_SENTENCE_END),
        "run": _RUN,
    }


def ecmascript(pattern: re.Pattern[str]) -> str:
    r"""A pattern of Python as ECMAScript writes it.

    It may have \w, \d and \s, outside brackets \S and \Z, and small letters of either case, (?ai:...).

    Example:
        >>> ecmascript(re.compile(r"\d+ (?ai:a|b) [\w-]  # digits", re.VERBOSE))
        '\\p{Nd}+(?:[aA]|[bB])[\\p{L}\\p{N}_-]'
    """

    def either_case(letter: re.Match[str]) -> str:
        return f"[{letter[0]}{letter[0].upper()}]"

    text = re.sub(r"#.*|\s", "", pattern.pattern) if pattern.flags & re.VERBOSE else pattern.pattern
    text = re.sub(r"\(\?ai:([a-z|]*)\)", lambda one: f"(?:{re.sub('[a-z]', either_case, one[1])})", text)
    letters, digits, space = r"\p{L}\p{N}_", r"\p{Nd}", white_space()
    inside = {r"\w": letters, r"\d": digits, r"\s": space}
    alone = {r"\w": f"[{letters}]", r"\d": digits, r"\s": f"[{space}]", r"\S": f"[^{space}]", r"\Z": "$"}

    def written(found: re.Match[str]) -> str:
        if not found[0].startswith("["):
            return alone.get(found[0], found[0])
        return re.sub(r"\\.", lambda one: inside.get(one[0], one[0]), found[0])

    return re.sub(r"\[(?:\\.|[^\]\\])*\]|\\.", written, text)


@functools.cache
def white_space() -> str:
    """What `str.isspace` takes for white space, within brackets of a pattern."""
    found = [code for code in range(0x10000) if chr(code).isspace()]
    starts = [code for code in found if code - 1 not in found]
    stops = [code for code in found if code + 1 not in found]
    return "".join(f"\\u{start:04x}-\\u{stop:04x}" for start, stop in zip(starts, stops, strict=True))
