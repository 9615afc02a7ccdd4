"""Curves as SVG: transparent, coloured by the style sheet of the page, readable when small."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

from elman.drawing.style import MUTED, Ticks, canvas, colour, number, svg

_LOG_FROM = {"perplexity": 3.0, "nll": math.inf, "rate": 200.0, "norm": 10.0, "speed": math.inf}
"""Ratio of the largest to the smallest value from which a logarithmic scale is used, by what is drawn."""

_FASTEST = 3.0
"""The largest speed of an axis, in medians."""

_HIGHEST = 1e9
"""The largest perplexity that sets an axis, in smallest ones: a model beyond it has diverged, and its curve leaves the
axis."""

_LOSSES = ("perplexity", "nll")

LABEL_HEIGHT = 12.0
"""Points from the label of a level to the one above it."""

Quantity = Literal["perplexity", "nll", "rate", "norm", "speed"]


@dataclasses.dataclass(frozen=True)
class Curve:
    """One line; `series` picks the colour.

    `form`: "running" is many values, drawn thin; "checks" are few, drawn as dots joined by a line.
    """

    x: Sequence[float]
    y: Sequence[float]
    series: int = 0
    form: Literal["running", "checks"] = "running"


@dataclasses.dataclass(frozen=True)
class Mark:
    """A labelled place on an axis: a dotted line."""

    at: float
    label: str


@dataclasses.dataclass(frozen=True)
class Plot:
    """A figure: its curves, events across it (`marks`), levels along it, and points with a ring (x, y, series)."""

    name: str
    title: str
    description: str
    x_label: str
    quantity: Quantity
    curves: Sequence[Curve]
    marks: Sequence[Mark] = ()
    levels: Sequence[Mark] = ()
    rings: Sequence[tuple[float, float, int]] = ()
    size: Literal["wide", "narrow"] = "wide"


def is_empty(plot: Plot) -> bool:
    """Whether there is nothing to draw: no finite point on any curve."""
    return not any(_finite(curve.x, curve.y) for curve in plot.curves)


def thin(points: Sequence[tuple[float, float]], geometric: bool, limit: int = 400) -> list[tuple[float, float]]:
    """At most `limit` points, each the mean of its neighbours (`geometric` for perplexities).

    Example:
        >>> thin([(0, 1.0), (1, 3.0), (2, 5.0), (3, 5.0)], geometric=False, limit=2)
        [(0.5, 2.0), (2.5, 5.0)]
    """
    if len(points) <= limit:
        return list(points)
    size = math.ceil(len(points) / limit)
    chunks = (points[start : start + size] for start in range(0, len(points), size))
    return [_mean(chunk, geometric) for chunk in chunks]


def draw(plot: Plot) -> Markup:
    """The plot as an `<svg>` element with a title and a description for those who do not see it."""
    figure, axes = canvas(plot.size)
    _scale(axes, plot)
    dense = max((len(curve.x) for curve in plot.curves if curve.form == "checks"), default=0) > 40
    for curve in plot.curves:
        points = thin(_finite(curve.x, curve.y), plot.quantity == "perplexity")
        x, y = [point[0] for point in points], [point[1] for point in points]
        if curve.form == "running":
            alpha = 0.55 if plot.quantity in _LOSSES else 0.85
            alone = "o" if len(points) == 1 else None
            axes.plot(x, y, color=colour(curve.series), linewidth=1.0, alpha=alpha, marker=alone, markersize=4)
        else:
            axes.plot(x, y, color=colour(curve.series), linewidth=1.8, marker=None if dense else "o", markersize=4)
    for x_ring, y_ring, series in plot.rings:
        axes.plot([x_ring], [y_ring], "o", markersize=9, markerfacecolor="none", markeredgecolor=colour(series))
    _levels(axes, plot.levels)
    _marks(axes, plot.marks)
    axes.set_xlabel(plot.x_label, color=MUTED, fontsize=9.5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7 if plot.size == "wide" else 5, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(Ticks())
    axes.set_xlim(left=0)
    return svg(figure, plot.name, plot.title, plot.description)


def _finite(x: Sequence[float], y: Sequence[float]) -> list[tuple[float, float]]:
    return [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)]


def _mean(points: Sequence[tuple[float, float]], geometric: bool) -> tuple[float, float]:
    x = sum(point[0] for point in points) / len(points)
    if geometric and all(point[1] > 0 for point in points):
        return x, math.exp(sum(math.log(point[1]) for point in points) / len(points))
    return x, sum(point[1] for point in points) / len(points)


def _scale(axes: Axes, plot: Plot) -> None:
    """Logarithmic where values span much, else linear, and from zero for all but losses."""
    values = [y for curve in plot.curves for _, y in _finite(curve.x, curve.y)]
    low, high = min(values), max(values)
    if plot.quantity == "speed":
        high = min(high, _FASTEST * sorted(values)[len(values) // 2])  # one wrong time would fill the axis otherwise
    if plot.quantity == "perplexity" and low > 0:
        high = max(value for value in values if value <= _HIGHEST * low)
    drawn = (y for curve in plot.curves if curve.form == "checks" for _, y in _finite(curve.x, curve.y))
    if checks := [y for y in drawn if y <= high]:
        top = max(checks)  # the first steps of training would fill the axis otherwise; densities may be negative
        high = min(high, top + 1.2 * max(abs(top), top - min(checks)))
    if low > 0 and high / low > _LOG_FROM[plot.quantity]:
        axes.set_yscale("log")
        axes.set_ylim(low / 1.12, high * 1.12)
        axes.yaxis.set_major_locator(_log_ticks(high / low))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif plot.quantity in _LOSSES:
        margin = 0.06 * (high - low or abs(high) or 1)
        axes.set_ylim(low - margin, high + margin)
    elif low >= 0:
        axes.set_ylim(0, high * 1.08 or 1)
    axes.yaxis.set_major_formatter(Ticks())


def _log_ticks(ratio: float) -> LogLocator:
    """More within a power of ten the fewer powers there are; of many only some."""
    if ratio > 1e4:
        return LogLocator(numticks=7)
    return LogLocator(subs=(1, 1.5, 2, 3, 5, 7) if ratio < 30 else (1, 2, 5))


def _levels(axes: Axes, levels: Sequence[Mark]) -> None:
    """Levels within the axis, or at most half its height below it, which then begins lower; others would flatten it.

    The label of one that is close above another stands higher, so that none covers the other.
    """
    low, high = axes.get_ylim()
    height = math.log(high / low) if axes.get_yscale() == "log" else high - low
    furthest = low * math.exp(-0.5 * height) if axes.get_yscale() == "log" else low - 0.5 * height
    shown = [level for level in levels if furthest <= level.at < high]
    if (lowest := min((level.at for level in shown), default=low)) < low:
        margin = lowest / 1.12 if axes.get_yscale() == "log" else lowest - 0.06 * height
        axes.set_ylim(margin, high)
    free = 0.0
    for level in sorted(shown, key=lambda level: level.at):
        axes.axhline(level.at, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        place = float(axes.transData.transform((0, level.at))[1]) * 72 / axes.figure.dpi
        free = max(free, place + 3)
        text = f"{level.label} {number(level.at, 3)}"
        _note(axes, text, (1, level.at), (-2, free - place), ("axes fraction", "data"), "right")
        free += LABEL_HEIGHT


def _marks(axes: Axes, marks: Sequence[Mark]) -> None:
    """Lines across with their labels to the right, or to the left where there is no room to the right."""
    end = axes.get_xlim()[1]
    for index, mark in enumerate(marks):
        late = mark.at > 0.7 * end
        axes.axvline(mark.at, color=MUTED, linewidth=1, linestyle=(0, (1, 2)))
        offset = (-3 if late else 3, -9 - 11 * (index % 3))
        _note(axes, mark.label, (mark.at, 1), offset, ("data", "axes fraction"), "right" if late else "left")


def _note(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], within: tuple[str, str], side: str
) -> None:
    note = axes.annotate(text, at, offset, within, "offset points", ha=side, color=MUTED, fontsize=8.5)
    note.set_gid(f"note-{len(axes.texts)}")  # the page draws a rim around it, above curves
