"""What a decoder looked at: a heat map with the source along the top and the target, downwards."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

import numpy as np
from markupsafe import Markup, escape

from elman.report.analysis import Section, write_page

if TYPE_CHECKING:
    from elman.pair_run import Transduction

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


def write_attention_page(out: Path, title: str, found: "Sequence[Transduction]", shown: int) -> Path:
    """Write the page about targets and what was looked at; `shown` of them one by one."""
    part = f"the first {shown:,} of {len(found):,} sources" if shown < len(found) else f"all {len(found):,} sources"
    figures = Markup("\n").join(
        Markup('<figure class="sample">{}<figcaption>{}<br><b>{}</b></figcaption></figure>').format(
            draw_attention(one.source, [*one.words, "<eos>"], one.attention.tolist(), one.text),
            " ".join(one.source),
            one.text,
        )
        for one in found[:shown]
    )
    return write_page(
        out,
        kind="Attention",
        title=title,
        verdict=verdict(found),
        sections=[
            Section(
                "What was looked at",
                [
                    f"The best target of {part}. A row is a word of the target, or its end; the darker a cell, the more"
                    " of the source's word was in the context. Point at a cell for its weight."
                ],
                body=figures,
            )
        ],
    )


def verdict(found: "Sequence[Transduction]") -> str:
    """How narrow the looks are, and how often they go on from left to right."""
    if not found:
        return "There is no source that is not blank."
    narrow = float(np.mean([entropy(one) for one in found]))
    peaks = [one.attention.argmax(1) for one in found]
    steps = np.concatenate([np.diff(peak) for peak in peaks])
    onwards = f" and {100 * float((steps >= 0).mean()):.0f} % of looks stay or go on to the right" if len(steps) else ""
    return f"A word looks at {2**narrow:.1f} words of its source (2 to the mean entropy){onwards}."


def entropy(found: "Transduction") -> float:
    """The mean entropy of the looks, bits."""
    weights = found.attention.astype(np.float64)
    return float(-(weights * np.log2(np.maximum(weights, 1e-30))).sum(1).mean())
