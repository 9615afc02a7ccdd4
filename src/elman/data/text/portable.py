"""The rules by which text is read and written, as data that a program in another language interprets (JSON).

Patterns are written for ECMAScript with the flag `u`.
"""

from typing import Any

from elman.config.text import TextOptions
from elman.data.text import patterns
from elman.data.text.passages import _NOTE, _RUBY
from elman.data.text.tokeniser import _RUN, APOSTROPHE, CLOSING, DASH, GREEK_COLON, QUOTES, TIGHT
from elman.data.text.utf8 import BYTES
from elman.data.text.utf8 import SPACE as MARKER
from elman.data.text.vocabulary import EOS, UNK


def portable_rules(options: TextOptions) -> dict[str, Any]:
    """The rules by which a program in another language reads and writes text as `options` do.

    A line is cleaned (`removed`: patterns, and whether until none is left; `normalisation`), passed on or dropped
    (`blank`), and ends a sentence (`closed`) with `<eos>`. `token` finds the tokens of a part of a line that `part`
    finds; where `bytes` are named, tokens are bytes or subwords.
    """
    removed = [(_NOTE.pattern, True), (_RUBY.pattern, False), ("\uff5c", False)]
    names = list(BYTES) if options.tokenisation == "bytes" else [f"<0x{value:02X}>" for value in range(256)]
    words = patterns.WORDS_ELIDED if options.elisions else patterns.WORDS
    every_line = options.eos == "line" and options.tokenisation != "raw"
    return {
        "tokenisation": options.tokenisation,
        "spelt": options.spelt,
        "lowercase": options.lowercase,
        "elisions": options.elisions,
        "eos": EOS,
        "unk": UNK,
        "removed": removed if options.ruby == "remove" else [],
        "normalisation": None if options.normalisation == "none" else options.normalisation,
        "blank": "kept" if options.eos == "exact" or every_line else "once" if options.eos == "line" else "dropped",
        "closed": {"line": "line", "paragraph": "paragraph", "exact": "feed"}.get(options.eos, "never"),
        "whole": options.eos in ("none", "exact"),
        "returns": options.eos == "exact",
        "ended": patterns.ENDED.get(options.eos, patterns.FEED),
        "space": patterns.SPACE,
        "part": {"words": "[^ \t\n\r\f\v]+", "raw": patterns.PARTS}.get(options.tokenisation, f"[^{patterns.SPACE}]+"),
        "token": words if options.tokenisation == "raw" else r"[\s\S]+",
        "characters": patterns.CHARACTERS,
        "bytes": names if options.open_vocabulary else None,
        "marker": MARKER,
        "break": "\n\n" if options.eos == "paragraph" else "\n",
        "letter": f"[{patterns.LETTERS}]",
        "tight_before": patterns.TIGHT_BEFORE,
        "tight_after": patterns.TIGHT_AFTER_ELIDED if options.elisions else patterns.TIGHT_AFTER,
        "tight": sorted(TIGHT),
        "quotes": QUOTES,
        "closing": sorted(CLOSING),
        "dash": DASH,
        "greek_colon": GREEK_COLON,
        "currency": patterns.CURRENCY,
        "digit_last": patterns.DIGIT_LAST,
        "latin": patterns.LATIN,
        "other_letter": patterns.OTHER_LETTER,
        "apostrophes": ["'", APOSTROPHE],
        "sentence_ends": patterns.SENTENCE_ENDS,
        "run": _RUN,
    }
