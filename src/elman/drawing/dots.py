"""Values of several groups as dots, a row for each group."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal

from matplotlib.figure import Figure

from elman.drawing.style import GRID, INK, MUTED, canvas, colour, scale_across

_FURTHEST = 4.0
"""How many times the range of the values the axis may span so that published values are shown."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A group: its label, its values and, where there is one, a published value."""

    label: str
    values: Sequence[float]
    published: float | None = None


def draw_dots(rows: Sequence[Row], label: str, size: Literal["wide", "narrow"] = "wide") -> Figure:
    """A dot for each finite value and a line at their mean, which values that are not finite do not have.

    `label` is the axis. Published values are diamonds; they are left out where they are so far away that the dots would
    lie on each other.
    """
    figure, axes = canvas(size)
    figure.set_figheight(0.75 + 0.3 * len(rows))
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color=GRID, linewidth=0.7)
    published = _published(rows)
    shown = [*published.values(), *(value for row in rows for value in row.values if math.isfinite(value))]
    for place, row in enumerate(rows):
        finite = [value for value in row.values if math.isfinite(value)]
        axes.plot(finite, [place] * len(finite), "o", color=colour(place), alpha=0.75, markersize=5)
        if 1 < len(finite) == len(row.values):
            mean = sum(finite) / len(finite)
            axes.plot([mean, mean], [place - 0.32, place + 0.32], color=colour(place), linewidth=1.6)
    for place, value in published.items():
        axes.plot([value], [place], "D", markersize=6, markerfacecolor="none", markeredgecolor=INK)
    scale_across(axes, shown, 5 if size == "wide" else 4)
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(label, color=MUTED, fontsize=9.5)
    return figure


def _published(rows: Sequence[Row]) -> dict[int, float]:
    """The published values by the places of their rows; none where they are far from the others."""
    found = {place: row.published for place, row in enumerate(rows) if row.published is not None}
    own = [value for row in rows for value in row.values if math.isfinite(value)]
    if not own or min(own) == max(own):
        return found
    every = [*own, *found.values()]
    return found if max(every) - min(every) <= _FURTHEST * (max(own) - min(own)) else {}
