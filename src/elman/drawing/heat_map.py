"""A passage as a heat map: each word on a ground the warmer, the more bits it took to predict."""

import math
from collections.abc import Sequence

import msgspec
from markupsafe import Markup, escape

HOTTEST = 16.0
"""Bits at which the scale ends: a uniform guess among 65,536 words. It is the same on every page, so that
pages can be compared."""

LINE_END = "<eos>"


class Word(msgspec.Struct, frozen=True):
    """A word of surprisal.json and its surprisal in bits, None where it was not scored."""

    word: str
    surprisal: float | None


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
    scored = [(word.word, word.surprisal) for word in words if _scored(word.surprisal)]
    return sorted(scored, key=lambda pair: -pair[1])[:count]  # type: ignore[return-value, operator]


def mean_bits(words: Sequence[Word]) -> float:
    """Mean surprisal of the scored words; NaN when there are none."""
    bits = [word.surprisal for word in words if word.surprisal is not None and _scored(word.surprisal)]
    return sum(bits) / len(bits) if bits else math.nan


def _scored(bits: float | None) -> bool:
    return bits is not None and math.isfinite(bits)


def _span(word: Word) -> Markup:
    ends = word.word == LINE_END
    shown = Markup('<span aria-label="end of line">↵</span>') if ends else escape(word.word)
    after = Markup("<br>\n") if ends else Markup(" ")
    bits = word.surprisal
    if bits is None or not math.isfinite(bits):
        return Markup('<span class="word" title="not scored">{}</span>{}').format(shown, after)
    tooltip = f"{word.word}: {bits:.2f} bits, probability {odds(bits)}"
    span = Markup('<span class="word" style="--heat:{:.3f}" data-bits="{:.1f}" title="{}">{}</span>{}')
    return span.format(heat(bits), bits, tooltip, shown, after)
