"""Labelled points: what things reach against what they cost."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from elman.drawing.style import GRID, INK, canvas, colour, label, scale_across

_PLACES = ((6, -2.5), (-6, -2.5), (0, 6), (0, -11), (6, 5), (-6, 5), (6, -10), (-6, -10))
"""Where a name may stand from its point, in points of 1/72 inch; to the left of it, it is set flush right."""


_ABOVE = 0.6
"""Trails end this share of the height of the dots above the highest one, where they begin higher."""


class Point(NamedTuple):
    """Something with a name; both numbers are finite. `trail`: the points that led there, oldest first."""

    name: str
    x: float
    y: float
    trail: Sequence[tuple[float, float]] = ()


def draw_points(points: Sequence[Point], x_label: str, y_label: str, *, steps: bool = False) -> Figure:
    """A dot for each point with its name next to it, where it covers no other dot or name if there is such a place.

    A trail is a thin line, cut where it is far above all dots; with `steps` it is shown whole, with small dots for its
    points.
    """
    figure, axes = canvas("wide")
    figure.set_size_inches(6.6, 4.4)
    axes.grid(axis="x", color=GRID, linewidth=0.7)
    for number, point in enumerate(points):
        axes.plot([point.x], [point.y], "o", color=colour(number), markersize=5.5)
        if trail := [(x, y) for x, y in point.trail if math.isfinite(y)]:
            line = axes.plot(
                *zip(*trail, (point.x, point.y), strict=True), color=colour(number), linewidth=0.9, alpha=0.6
            )
            line[0].set(marker="o" if steps else "", markersize=3.0)
    scale_across(axes, [x for point in points for x in (point.x, *(each for each, _ in point.trail if steps))], 6)
    axes.margins(x=0.14, y=0.1)
    if not steps and any(point.trail for point in points):
        low, high = min(point.y for point in points), max(point.y for point in points)
        axes.set_ylim(low - 0.1 * (high - low or 1), high + _ABOVE * (high - low or 1))
    label(axes, x_label, y_label)
    _name(figure, axes, points)
    return figure


def _name(figure: Figure, axes: Axes, points: Sequence[Point]) -> None:
    """Write the names one by one, each at the first place with the least overlap."""
    figure.draw_without_rendering()
    centres = [axes.transData.transform((one.x, one.y)) for one in points]
    dots = [Bbox.from_bounds(float(x) - 4, float(y) - 4, 8, 8) for x, y in centres]
    taken = list[Bbox]()
    for number, point in enumerate(points):
        others = [*dots[:number], *dots[number + 1 :], *taken]
        found = [axes.annotate(
            point.name, (point.x, point.y), (x, y), textcoords="offset points", fontsize=8, color=INK,
            ha="left" if x > 0 else "right" if x < 0 else "center", parse_math=False,
        ) for x, y in _PLACES]  # fmt: skip
        boxes = [one.get_window_extent() for one in found]
        covered = [_overlap(box, others) for box in boxes]
        best = covered.index(min(covered))
        taken.append(boxes[best])
        for place, one in enumerate(found):
            if place != best:
                one.remove()


def _overlap(box: Bbox, others: Iterable[Bbox]) -> float:
    """The area of `box` that the others cover, each counted by itself."""
    both = (Bbox.intersection(box, other) for other in others)
    return sum(one.width * one.height for one in both if one is not None)
