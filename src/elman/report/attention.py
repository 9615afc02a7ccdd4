"""What a decoder looked at: a heat map with the source along the top and the target, downwards."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup, escape

from elman.pair_run import Transduction
from elman.report.analysis import Section, write_page

_CELL, _LETTER, _GAP, _SLANT = 22, 6.4, 8, 0.72
"""CSS pixels of a cell's side, a letter's width, between words and cells; how far slanted words rise and lean."""


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
    left = _GAP + _LETTER * max(map(len, target), default=1) * 1.1
    above = _GAP + _LETTER * max(map(len, source), default=1) * _SLANT + 10
    width = left + len(source) * _CELL + _LETTER * max(map(len, source), default=1) * _SLANT
    height = above + len(target) * _CELL + 2
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


def write_attention_page(out: Path, title: str, found: Sequence[Transduction], shown: int) -> Path:
    """Write the page about targets and what was looked at; `shown` of them one by one."""
    part = f"the first {shown:,} of {len(found):,} sources" if shown < len(found) else f"all {len(found):,} sources"
    figures = Markup("\n").join(
        Markup('<figure class="sample">{}<figcaption>{} <b>{}</b></figcaption></figure>').format(
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


def verdict(found: Sequence[Transduction]) -> str:
    """How narrow the looks are, and how often they go on from left to right."""
    if not found:
        return "There is no source that is not blank."
    narrow = float(np.mean([entropy(one) for one in found]))
    peaks = [one.attention.argmax(1) for one in found]
    steps = np.concatenate([np.diff(peak) for peak in peaks])
    onwards = f" and {100 * float((steps >= 0).mean()):.0f} % of looks stay or go on to the right" if len(steps) else ""
    return f"A word looks at {2**narrow:.1f} words of its source (2 to the mean entropy){onwards}."


def entropy(found: Transduction) -> float:
    """The mean entropy of the looks, bits."""
    weights = found.attention.astype(np.float64)
    return float(-(weights * np.log2(np.maximum(weights, 1e-30))).sum(1).mean())
