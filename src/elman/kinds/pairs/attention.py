"""The attention of a decoder: heat maps with the source along the top and the target downwards."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from elman.drawing.heat_map import draw_attention
from elman.drawing.page import Section, part_of, write_page

if TYPE_CHECKING:
    from elman.kinds.pairs.run import Translation


def write_attention_page(out: Path, title: str, found: "Sequence[Translation]", shown: int) -> Path:
    """Write the page about targets and their attention; `shown` of them one by one."""
    text = (
        f"The best target of {part_of(shown, len(found), 'sources')}. A row is a word of the target, or its end; the"
        " darker a cell, the larger the weight of the source word in the context. Point at a cell for the weight."
    )
    figures = Markup("\n").join(
        Markup('<figure class="sample">{}<figcaption>{}<br><b>{}</b></figcaption></figure>').format(
            draw_attention(one.source, [*one.words, "<eos>"], one.attention.tolist(), one.text),
            " ".join(one.source),
            one.text,
        )
        for one in found[:shown]
    )
    sections = [Section("Attention", [text], body=figures)]
    return write_page(out, kind="Attention", title=title, verdict=verdict(found), sections=sections)


def verdict(found: "Sequence[Translation]") -> str:
    """How concentrated the attention is, and how often it moves from left to right."""
    if not found:
        return "All sources are blank."
    narrow = float(np.average([entropy(one) for one in found], weights=[len(one.attention) for one in found]))
    steps = np.concatenate([np.diff(one.attention.argmax(1)) for one in found])
    onwards = ""
    if len(steps):
        onwards = f"; in {100 * float((steps >= 0).mean()):.0f} % of the steps its peak stays or moves to the right"
    return f"Attention covers {2**narrow:.1f} source words per target word (2 to the mean entropy){onwards}."


def entropy(found: "Translation") -> float:
    """The mean entropy of the attention weights, bits."""
    weights = found.attention.astype(np.float64)
    return float(-(weights * np.log2(np.maximum(weights, 1e-30))).sum(1).mean())
