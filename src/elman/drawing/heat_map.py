"""Heat maps: the words of a passage by their surprisal, the weights of attention, and numbers over time."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from unicodedata import east_asian_width

import msgspec
from markupsafe import Markup, escape

HOTTEST = 16.0
"""Bits at which the scale ends on every page: a uniform guess among 65,536 words."""

_CELL, _LETTER, _GAP, _SLANT = 22, 7.0, 8, 0.71
"""CSS pixels of a cell's side, a letter's width, between words and cells; sine of the angle of the source's words."""


class Word(msgspec.Struct, frozen=True, omit_defaults=True):
    """A word of surprisal.json and its surprisal in bits, None where it was not scored.

    `unknown`: the vocabulary lacks it, so that the surprisal is of `<unk>`.
    """

    word: str
    surprisal: float | None
    unknown: bool = False


def heat(bits: float) -> float:
    """Where a surprisal lies on the scale, 0 to 1.

    Example:
        >>> heat(4.0), heat(40.0)
        (0.25, 1.0)
    """
    return min(1.0, max(0.0, bits / HOTTEST))


def odds(bits: float) -> str:
    """A surprisal as a probability: "1 in 2^bits".

    Example:
        >>> odds(1.0), odds(10.0), odds(0.2)
        ('1 in 2', '1 in 1,024', '87 %')
    """
    if bits < 1.0:
        return f"{100 * 2**-bits:.0f} %"
    return f"1 in {2**bits:,.0f}" if bits < 40 else f"1 in 2^{bits:.0f}"


def heat_map(words: Sequence[Word]) -> Markup:
    """Spans with `--heat` for the style sheet, the bits, and a tooltip; `<eos>` ends a line."""
    return Markup("").join(_span(word) for word in words)


def most_surprising(words: Sequence[Word], count: int = 5) -> list[tuple[str, float]]:
    """The words of highest surprisal, the highest first."""
    return sorted(_scored(words), key=lambda pair: -pair[1])[:count]


def has_unknown(words: Sequence[Word]) -> bool:
    return any(word.unknown for word in words)


def mean_bits(words: Sequence[Word]) -> float:
    """Mean surprisal of the scored words; NaN when there are none."""
    bits = [surprisal for _, surprisal in _scored(words)]
    return sum(bits) / len(bits) if bits else math.nan


def _scored(words: Sequence[Word]) -> list[tuple[str, float]]:
    return [(one.word, one.surprisal) for one in words if one.surprisal is not None and math.isfinite(one.surprisal)]


def _span(word: Word) -> Markup:
    ends = word.word == "<eos>"
    shown = Markup('<span aria-label="end of line">↵</span>') if ends else escape(word.word)
    after = Markup("<br>\n") if ends else Markup(" ")
    bits = word.surprisal
    if bits is None or not math.isfinite(bits):
        return Markup('<span class="word" title="not scored">{}</span>{}').format(shown, after)
    tooltip = f"{word.word}: {bits:.2f} bits, probability {odds(bits)}{', not in the vocabulary' * word.unknown}"
    span = Markup('<span class="word{}" style="--heat:{:.3f}" data-bits="{:.1f}" title="{}">{}</span>{}')
    return span.format(" unknown" * word.unknown, heat(bits), bits, tooltip, shown, after)


def draw_attention(
    source: Sequence[str], target: Sequence[str], weights: Sequence[Sequence[float]], name: str
) -> Markup:
    """An `<svg>` of weights [T, S]: the darker a cell, the larger the weight of the source word for the target word.

    The S source words stand along the top, the T target words downwards; `name` is for screen readers.
    """
    leaning = _SLANT * _longest(source)
    left, above = _GAP + _longest(target), _GAP + leaning + 10
    width, height = left + len(source) * _CELL + leaning, above + len(target) * _CELL + 2
    parts = []
    for column, word in enumerate(source):
        x, y = left + (column + 0.5) * _CELL, above - _GAP
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}" transform="rotate(-45 {x:.1f} {y:.1f})">{escape(word)}</text>')
    for row, (word, line) in enumerate(zip(target, weights, strict=True)):
        y = above + row * _CELL
        parts.append(f'<text x="{left - _GAP:.1f}" y="{y + _CELL * 0.66:.1f}" text-anchor="end">{escape(word)}</text>')
        for column, weight in enumerate(line):
            tooltip = f"{word} attends to {source[column]}: {100 * weight:.0f} %"
            parts.append(
                f'<rect x="{left + column * _CELL:.1f}" y="{y:.1f}" width="{_CELL - 1}" height="{_CELL - 1}"'
                f' fill-opacity="{max(0.04, min(1.0, weight)):.2f}"><title>{escape(tooltip)}</title></rect>'
            )
    return Markup(
        f'<svg class="attention" role="img" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"'
        f' font-size="11"><title>{escape(name)}</title>{"".join(parts)}</svg>'
    )


def draw_over_time(rows: Sequence[Sequence[float]], name: str, width: float = 9, height: float = 9) -> Markup:
    """An `<svg>` of numbers from 0 to 1, time from left to right: the darker a cell, the larger its number.

    `rows` are as long as there are steps, the first at the top; `name` is for screen readers, and a cell has `width`
    and `height` in CSS pixels. Numbers are rounded to percent; neighbours of one row that are equal then are one bar.
    """
    across, down = width * max(map(len, rows), default=0), height * len(rows)
    parts = [f'<rect class="ground" width="{across:g}" height="{down:g}"/>']
    for row, line in enumerate(rows):
        for shade, first, end in _bars([round(100 * min(1.0, max(0.0, number))) for number in line]):
            parts.append(
                f'<rect x="{first * width:g}" y="{row * height:g}" width="{(end - first) * width:g}"'
                f' height="{height:g}" fill-opacity="{shade / 100:g}"/>'
            )
    size = f'viewBox="0 0 {across:g} {down:g}" width="{across:g}"'
    return Markup(f'<svg class="attention" role="img" {size}><title>{escape(name)}</title>{"".join(parts)}</svg>')


def _bars(shades: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """(shade, first, end) of each run of equal shades above 0."""
    at = 0
    for shade, equal in groupby(shades):
        first, at = at, at + len(list(equal))
        if shade:
            yield shade, first, at


def text_width(word: str, letter: float) -> float:
    """CSS pixels of a word whose letters have `letter` each, approximately; kana and kanji are wide."""
    return letter * sum(1.7 if east_asian_width(one) in "WF" else 1.0 for one in word)


def _longest(words: Sequence[str]) -> float:
    return max((text_width(word, _LETTER) for word in words), default=_LETTER)
