"""Facts about a text that decide how it is best read: its lines, its marks, its capitals, its size."""

import codecs
import itertools
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import regex

from elman.data.lines import lines_of
from elman.data.text.encodings import of_head
from elman.data.text.files import BLOCK, Files
from elman.data.text.passages import has_words, remove_ruby, unseparated
from elman.data.text.patterns import SENTENCE_ENDS, characters_of
from elman.data.text.tokeniser import split_raw
from elman.errors import UserError

WRAPPED = 0.5
"""Share of the lines within a block that begin in lower case, from which on lines are parts of paragraphs.

In wrapped prose it is above 0.8, in verse below 0.2. Of scripts without capitals: the share that follow a line without
the end of a sentence.
"""

EVEN = 0.6  # share of the lines before another one that are almost as long as most: the least of wrapped lines
FEW_ELISIONS, ALONE = 10, 0.15
"""Different words after an apostrophe, and the share of them that stand alone elsewhere, from which on it elides."""

_ELISION = re.compile("([^\\W\\d_]+)['\u2019]([^\\W\\d_].*)")
_FINAL = regex.compile(rf"(?:{SENTENCE_ENDS})[\"'\p{{Pe}}\p{{Pf}}\p{{Pi}}]*\s*$")
_LETTER = regex.compile(r"[\p{P}\s]*\p{L}")
_ATTACHED = re.compile(r"\w[,;!?\u3001\u3002](?=\s|$)", re.MULTILINE)
_ALONE = re.compile(r"(?<!\S)[,;!?\u3001\u3002](?=\s|$)", re.MULTILINE)
_UNKNOWN = re.compile(r"(?<!\S)<unk>(?!\S)")
_RUBY = re.compile("[^《》\n]《[^《》\n]{1,12}》")


class TextFacts(NamedTuple):
    """What the first mebibyte of a text shows, and its size.

    Attributes:
        size: bytes of the whole file.
        lines, blocks: lines that are not blank, and blocks of them between blank lines, in the whole file.
        longest: share of the text's characters in the longest line of the sample.
        wrapped: lines within a block continue the sentence of the line before.
        words: spaces separate words.
        tokenised: marks stand apart from words, or `<unk>` occurs.
        unknown: `<unk>` occurs.
        ruby: readings stand in the marks of Aozora Bunko.
        tokens: tokens of the whole file: words and marks, or characters; estimated from the sample.
        types: different tokens of the sample.
        rare: most words occur once: names, molecules, proteins.
        elisions: words end with an apostrophe before others, as in French and Italian.
    """

    size: int
    lines: int
    blocks: int
    longest: float
    wrapped: bool
    words: bool
    tokenised: bool
    unknown: bool
    ruby: bool
    tokens: int
    types: int
    rare: bool = False
    elisions: bool = False


def text_facts(source: Files | Path) -> TextFacts:
    """The facts of a text; raises UserError where there is no word in it."""
    files = Files.of(source)
    size = files.size
    with files.stored.reading() as file:
        head = file.read(BLOCK).removeprefix(codecs.BOM_UTF8)
    whole = len(head) >= size
    codec = of_head(head)
    text = codecs.getincrementaldecoder(codec)(errors="replace").decode(head, final=whole)
    if not text.strip():
        raise UserError(f"{files.name}: no text in it; give a text of at least two different words")
    return facts_of(text, size, size / len(head))


def facts_of(text: str, size: int, scale: float = 1.0) -> TextFacts:
    """The facts of a text of which this is the beginning, one part in `scale`."""
    lines = lines_of(text)
    kept = [line for line in lines if line.strip()]
    blocks = sum(bool(line.strip()) and not before.strip() for before, line in zip(["", *lines], lines, strict=False))
    words = has_words(unseparated(text), len(text))
    unknown = bool(_UNKNOWN.search(text))
    alone, attached = len(_ALONE.findall(text)), len(_ATTACHED.findall(text))
    ruby = not words and len(_RUBY.findall(text)) >= 5
    tokens = split_raw(text) if words else characters_of(remove_ruby(text) if ruby else text)
    elisions = words and _has_elisions(tokens)
    if elisions:
        tokens = split_raw(text, elisions=True)
    return TextFacts(
        size=size,
        lines=round(len(kept) * scale),
        blocks=round(blocks * scale),
        longest=max(map(len, kept)) / (len(text) * scale),
        wrapped=words and _is_wrapped(lines),
        words=words,
        tokenised=words and (unknown or alone >= max(5, 5 * attached)),
        unknown=unknown,
        ruby=ruby,
        tokens=round(len(tokens) * scale),
        types=len(set(tokens)),
        rare=words and not unknown and _are_rare(tokens),
        elisions=elisions,
    )


def _are_rare(tokens: list[str]) -> bool:
    """Whether more than half of a hundred words or more, marks left out, occur once; of English prose about a fifth."""
    counts = Counter(token for token in tokens if token[-1].isalnum())
    return sum(count == 1 for count in counts.values()) > max(50, sum(counts.values()) // 2)


def _has_elisions(tokens: list[str]) -> bool:
    """Whether few beginnings stand before apostrophes and many words after them, of which some stand alone too."""
    cut = [_ELISION.fullmatch(token) for token in {token.lower() for token in tokens}]
    pairs = [found.groups() for found in cut if found]
    starts, rests = ({pair[side] for pair in pairs} for side in (0, 1))
    alone = rests.intersection(token.lower() for token in tokens)
    return len(rests) >= FEW_ELISIONS and 3 * len(starts) <= len(rests) and len(alone) >= ALONE * len(rests)


def _is_wrapped(lines: list[str]) -> bool:
    inner = [
        (len(before), after.strip()) for before, after in itertools.pairwise(lines) if before.strip() and after.strip()
    ]
    if len(inner) < 5:
        return False
    lengths, followers = np.array([length for length, _ in inner]), [after for _, after in inner]
    if 2 * sum(bool(_LETTER.match(line)) for line in followers) < len(followers) or "\t" in followers[0]:
        return False  # a log, a list, numbers: such lines are not parts of sentences
    cased = [line for line in followers if line[0].lower() != line[0].upper()]
    if cased:
        continued = sum(line[0].islower() for line in cased) >= WRAPPED * len(cased)
    else:
        befores = [before for before, after in itertools.pairwise(lines) if before.strip() and after.strip()]
        continued = sum(not _FINAL.search(before) for before in befores) >= WRAPPED * len(befores)
    even = float(np.mean(lengths >= 0.8 * np.quantile(lengths, 0.9))) >= EVEN
    return bool(even and continued and lengths.min() < lengths.max())
