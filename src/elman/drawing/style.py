"""The style of all figures: size, colours, axes, and the conversion to SVG."""

import io
import math
import re
import warnings
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeAlias

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import Formatter, FuncFormatter, LogFormatter, LogLocator, MaxNLocator, NullFormatter

from elman.files import write_atomic

INK, MUTED, GRID = "#3b3b39", "#7a7a76", "#c9c8c2"
SERIES = ("#1f6f9f", "#c8553d", "#3a8a5c", "#8a5fb0", "#b07c1e", "#2a9d9d", "#b84a7a", "#6b7a2a")
"""Colours of the curves; the page has a custom property for each, with another value in dark mode."""

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LOG_FROM = 5.0
"""Ratio of the largest to the smallest value from which `scale_across` is logarithmic."""

Size: TypeAlias = Literal["wide", "narrow", "square"]

_PROPERTIES = {INK: "--ink", MUTED: "--muted", GRID: "--grid"} | {
    colour: f"--series-{index}" for index, colour in enumerate(SERIES)
}
_SIZES = {"wide": (4.8, 3.0), "narrow": (3.3, 2.4), "square": (3.3, 3.0)}
"""Inches of 72 CSS pixels; near the size on the page, so that text keeps its size."""


def colour(number: int) -> str:
    """The colour of a series; they repeat after the last."""
    return SERIES[number % len(SERIES)]


def legend(names: Iterable[str]) -> list[tuple[str, int]]:
    """The names of series with the numbers of their colours."""
    return [(name, number % len(SERIES)) for number, name in enumerate(names)]


def canvas(size: Size) -> tuple[Figure, Axes]:
    """A transparent figure with one pair of quiet axes: horizontal grid lines and a line below."""
    figure = Figure(figsize=_SIZES[size], facecolor="none", layout="constrained")
    axes = figure.add_subplot(facecolor="none")
    axes.grid(axis="y", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=MUTED, labelsize=9.5, length=0, which="both", pad=5)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(MUTED)
    axes.spines["bottom"].set_linewidth(0.8)
    return figure, axes


def number(value: float, digits: int) -> str:
    """A number with so many digits, below ten million with all before its point.

    Example:
        >>> number(731.25, 3), number(1002.5, 3), number(1002.5, 5), number(2.5e7, 3)
        ('731', '1,002', '1,002.5', '2.5e+07')
    """
    whole = len(str(round(abs(value)))) if abs(value) < 1e7 else 0
    return f"{value:,.{max(digits, whole)}g}"


class Ticks(Formatter):
    """Numbers with some digits, or as many as place each where its tick is, so that neighbours never have the same."""

    def __init__(self, digits: int = 3) -> None:
        self.digits = digits

    def __call__(self, value: float, pos: int | None = None) -> str:  # noqa: ARG002
        return number(value, self.digits)

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        near = 0.01 * min((abs(b - a) for a, b in pairwise(values)), default=math.inf)
        for digits in range(self.digits, 17):
            found = [number(value, digits) for value in values]
            if all(abs(float(one.replace(",", "")) - value) <= near for one, value in zip(found, values, strict=True)):
                break
        return found


def scale_across(axes: Axes, values: Collection[float], bins: int) -> None:
    """Numbers on the horizontal axis, of at most `bins` steps; logarithmic where the values span much."""
    if values and max(values) > _LOG_FROM * min(values) > 0:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=6))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=bins))
    axes.xaxis.set_major_formatter(Ticks(6))


def dated(axes: Axes, steps: Sequence[int], dates: Sequence[str], most: int = 5) -> None:
    """Dates in place of some steps on the horizontal axis, times below them."""
    places = range(0, len(steps), -(-len(steps) // most))
    axes.set_xticks([steps[place] for place in places], [dates[place].replace(" ", "\n") for place in places])


def label(axes: Axes, x: str, y: str) -> None:
    """The labels of both axes."""
    axes.set_xlabel(x, color=MUTED, fontsize=9.5)
    axes.set_ylabel(y, color=MUTED, fontsize=9.5)


def as_written(figure: Figure) -> None:
    """Show every text of a figure as it is written: matplotlib takes what stands between dollar signs for formulas.

    Its own numbers on logarithmic axes are formulas, so that they are written by themselves.
    """
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_formatter(), LogFormatter):
                axis.set_major_formatter(FuncFormatter(lambda value, _: _decade(value)))
                axis.set_minor_formatter(NullFormatter())
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_parse_math(False)


def _decade(value: float) -> str:
    exponent = round(math.log10(value))
    if -5 < exponent < 6 or not math.isclose(value, 10.0**exponent):
        return f"{value:,.6g}"
    return "10" + str(exponent).translate(_RAISED)


def svg(figure: Figure, name: str, title: str, description: str) -> Markup:
    """A figure in the colours of this module as an `<svg>` element; title and description are for screen readers.

    `name` must be unique within the page: it is the prefix of all identifiers in the element.
    """
    text = _saved(figure, name, "none")
    text = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{name}-", text)
    for colour, custom in _PROPERTIES.items():
        text = text.replace(colour, f"var({custom})")
    view_box = re.search(r'viewBox="[^"]*"', text)
    assert view_box is not None, "an SVG of matplotlib has a viewBox"
    body = text[text.index(">") + 1 :]
    opening = f'<svg class="plot" role="img" aria-labelledby="{name}-title" {view_box[0]}>'
    caption = f'<title id="{name}-title">{escape(title)}: {escape(description)}</title>'
    return Markup(f"{opening}\n{caption}{body}")


def svg_file(figure: Figure, name: str, title: str, description: str) -> str:
    """A figure as the text of an SVG file of its own, on white, in the colours of the light style."""
    text = _saved(figure, name, "white")
    opening = text[: text.index(">") + 1]
    caption = f"<title>{escape(title)}: {escape(description)}</title>"
    return f'<?xml version="1.0" encoding="utf-8"?>\n{opening}\n{caption}{text[len(opening) :]}'


def write_drawing(path: Path, figure: Figure, name: str, title: str, description: str) -> None:
    """Write a figure as SVG, or as PNG where the path ends in .png."""
    if path.suffix != ".png":
        write_atomic(path, svg_file(figure, name, title, description))
        return
    as_written(figure)
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=200, facecolor="white")
    write_atomic(path, data.getvalue())


def _saved(figure: Figure, name: str, background: str) -> str:
    """The `<svg>` element as matplotlib writes it; equal figures of one name are equal texts."""
    as_written(figure)
    buffer = io.StringIO()
    facts = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        # Text stays text, which the browser draws in a font that has its letters.
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from font")
        figure.savefig(buffer, format="svg", metadata=facts, facecolor=background)
    text = buffer.getvalue()
    return re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
