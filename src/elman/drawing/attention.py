"""An attention map as SVG."""

from collections.abc import Sequence
from unicodedata import east_asian_width

from markupsafe import Markup, escape

_CELL, _LETTER, _GAP, _SLANT = 22, 7.0, 8, 0.71
"""CSS pixels of a cell's side, a letter's width, between words and cells; sine of the angle of the source's words."""


def draw_attention(
    source: Sequence[str], target: Sequence[str], weights: Sequence[Sequence[float]], name: str
) -> Markup:
    """An `<svg>` of weights [T, S]: the warmer a cell, the more the target's word looked at the source's.

    Args:
        source: S words, along the top.
        target: T words, downwards.
        weights: rows that sum to one.
        name: of the picture, for those who do not see it.

    """
    leaning = _SLANT * _width(source)
    left, above = _GAP + _width(target), _GAP + leaning + 10
    width, height = left + len(source) * _CELL + leaning, above + len(target) * _CELL + 2
    parts = []
    for column, word in enumerate(source):
        x, y = left + (column + 0.5) * _CELL, above - _GAP
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}" transform="rotate(-45 {x:.1f} {y:.1f})">{escape(word)}</text>')
    for row, (word, line) in enumerate(zip(target, weights, strict=True)):
        y = above + row * _CELL
        parts.append(f'<text x="{left - _GAP:.1f}" y="{y + _CELL * 0.66:.1f}" text-anchor="end">{escape(word)}</text>')
        for column, weight in enumerate(line):
            told = f"{word} looked at {source[column]}: {100 * weight:.0f} %"
            parts.append(
                f'<rect x="{left + column * _CELL:.1f}" y="{y:.1f}" width="{_CELL - 1}" height="{_CELL - 1}"'
                f' fill-opacity="{max(0.04, min(1.0, weight)):.2f}"><title>{escape(told)}</title></rect>'
            )
    return Markup(
        f'<svg class="attention" role="img" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"'
        f' font-size="11"><title>{escape(name)}</title>{"".join(parts)}</svg>'
    )


def _width(words: Sequence[str]) -> float:
    """CSS pixels of the longest word, as those of wide characters (kana, kanji) about."""
    wide = [sum(1.7 if east_asian_width(letter) in "WF" else 1.0 for letter in word) for word in words]
    return _LETTER * max(wide, default=1.0)
