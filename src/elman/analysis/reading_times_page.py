"""What surprisal adds to reading times, drawn: partial effects with bands, changes in log-likelihood with intervals."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure as Drawing

from elman.analysis.reading_times import SURPRISAL, Fit, Regression, random_design
from elman.data.reading_times import Floats
from elman.drawing.page import Figure, Section, Table, write_page
from elman.drawing.style import GRID, INK, MUTED, canvas, colour, label, legend, svg
from elman.errors import counted

BINS = 12
"""Of equally many times, whose means are drawn."""

LONGEST = 24
"""Characters of a name in a drawing."""


class Partial(NamedTuple):
    """The effect of surprisal (bits) [m] on the time with its 95 % band, and means of times without other effects."""

    x: Floats
    effect: Floats
    margin: Floats
    points: tuple[Floats, Floats]


def partial_effect(regression: Regression, found: Fit, y: Floats) -> Partial:
    """Of the word itself, relative to the mean of its surprisal; the ends of the axis are the outer percentiles."""
    at = 1 + list(regression.predictors).index(SURPRISAL)
    bits, slope, error = regression.predictors[SURPRISAL], found.coefficients[at], found.errors[at]
    x = np.linspace(np.percentile(bits, 1), np.percentile(bits, 99), 50)
    centre = bits.mean()
    residual = y - found.expected(regression.x, random_design(regression.terms)) + slope * (bits - centre)
    parts = np.array_split(np.argsort(bits, kind="stable"), BINS)
    means = [(bits[part].mean(), residual[part].mean()) for part in parts if len(part)]
    points = np.array(means).T
    return Partial(x, slope * (x - centre), 1.96 * error * abs(x - centre), (points[0], points[1]))


def short(name: str) -> str:
    """The end of a name, where it is longer than a drawing has room for."""
    return name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}"


def draw_effects(partials: Mapping[str, Partial], unit: str) -> Drawing:
    """A line with its band for each model, in its colour, and means of the times around it."""
    figure, axes = canvas("wide")
    for number, (name, one) in enumerate(partials.items()):
        axes.fill_between(
            one.x, one.effect - one.margin, one.effect + one.margin, color=colour(number), alpha=0.2, linewidth=0
        )
        axes.plot(one.x, one.effect, color=colour(number), linewidth=1.6, label=short(name))
        axes.plot(*one.points, "o", color=colour(number), markersize=4, alpha=0.8)
    axes.legend(frameon=False, fontsize=7.5, labelcolor=MUTED)
    label(axes, "surprisal of the word (bits)", f"change of the time ({unit})")
    return figure


def draw_added(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Drawing:
    """A bar for each model, with its interval where items were left out; negative where a model makes it worse."""
    figure, axes = canvas("wide")
    figure.set_figheight(1.1 + 0.45 * len(rows))
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color=GRID, linewidth=0.7)
    for place, row in enumerate(rows):
        axes.barh(place, row.get("difference", row.get("delta")), height=0.6, color=colour(place), alpha=0.8)
        if "low" in row:
            axes.plot([row["low"], row["high"]], [place, place], color=INK, linewidth=1.4)
    axes.axvline(0, color=MUTED, linewidth=0.8)
    axes.set_yticks(range(len(rows)), list(map(short, names)))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    label(axes, "log-likelihood added to the baseline (nats per time)", "")
    return figure


def write_times_page(
    out: Path,
    facts: Mapping[str, Any],
    drawings: Mapping[str, Drawing],
    tables: Sequence[tuple[str, list[str], list[list[str]]]],
    notes: Sequence[str],
) -> Path:
    """Write the page of an analysis: its drawings by their titles, and the tables that the command prints."""
    names = [row["model"] for row in facts["models"]]
    figures = [
        Figure(title, Markup(svg(drawing, f"drawing-{number}", title, "one colour per model")))
        for number, (title, drawing) in enumerate(drawings.items())
    ]
    sections = [
        Section("What surprisal adds", list(notes), legend(names), figures),
        Section("Figures", tables=[Table(*table) for table in tables]),
    ]
    best = max(facts["models"], key=lambda row: row["delta"])
    verdict = f"Of {counted(len(names), 'model')} {best['model']} adds most: {best['delta']:.5f} nats per time."
    return write_page(out, kind="reading times", title=str(facts["table"]), verdict=verdict, sections=sections)
