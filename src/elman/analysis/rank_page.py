"""Singular values of several runs in one plot, like Fig. 4.4 of Kanai's thesis, and the page around it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from elman.analysis.rank import FACTORS, Finding
from elman.drawing.page import Figure, Section, Table, write_page
from elman.drawing.style import MUTED, canvas, colour, label, legend, svg

RULE = "√(V + T + 1) / 2 · σ₁ · ε"


def write_rank_page(out: Path, findings: Mapping[str, Finding], text: str) -> Path:
    """Write the page about the ranks of runs over `text`, a description in words."""
    return write_page(
        out,
        kind="Rank of the log-probabilities",
        title=next(iter(findings)) if len(findings) == 1 else f"{len(findings)} runs",
        verdict=verdict(findings),
        text=[
            f"The matrix of the log-probabilities of all V words after each of T positions of {text}."
            " One softmax over d hidden units with a bias never exceeds rank d + 2: the products of words and hidden"
            " states give d, the bias one more, and the normalising constants the last."
        ],
        sections=[_values(findings), *_tables(findings)],
    )


def sentence(name: str, finding: Finding) -> str:
    """The finding about one run in a sentence."""
    bound = f"d + {finding.softmax_bound - finding.size} = {finding.softmax_bound:,}"
    rank = rank_text(finding.rank, finding.at_least)
    if finding.bound is not None:
        kept = "exceeds it: rounding errors count as rank" if finding.exceeds else "is within it"
        return f"{name}: a softmax with d = {finding.size:,} never exceeds {bound}; the rank {rank} {kept}."
    where = {True: "is above", None: "may be above", False: "is within"}[finding.exceeds]
    return f"{name}: not bounded by d; the rank {rank} {where} {bound}, the bound of one softmax of this width."


def verdict(findings: Mapping[str, Finding]) -> str:
    """The finding about each run."""
    return " ".join(sentence(name, finding) for name, finding in findings.items())


def rank_text(rank: int, at_least: bool) -> str:
    """A rank, or its lower bound."""
    return f"≥ {rank:,}" if at_least else f"{rank:,}"


def _values(findings: Mapping[str, Finding]) -> Section:
    note = (
        "Dashed: the threshold of the rank. Dotted, upright: the bound of one softmax of that width. Where a line is"
        " pale, the values are smaller than the error of the method."
    )
    whole, largest = _figure(findings, "linear"), _figure(findings, "log")
    figures = [Figure("All of them", whole), Figure("The largest, drawn wider", largest)]
    return Section("Singular values", [note], legend(findings), figures)


def _figure(findings: Mapping[str, Finding], scale: Literal["linear", "log"]) -> Markup:
    figure, axes = canvas("wide")
    axes.set_xscale(scale)
    axes.set_yscale("log")
    for number, finding in enumerate(findings.values()):
        _draw(axes, finding, colour(number))
    count = max(len(finding.spectrum.singular_values) for finding in findings.values())
    _mark_bounds(axes, sorted({f.softmax_bound for f in findings.values() if f.softmax_bound <= count}))
    levels = {f"{finding.threshold / finding.spectrum.singular_values[0]:.2e}" for finding in findings.values()}
    for level in sorted(levels):
        axes.axhline(float(level), color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_ylim(min(_floor(finding) for finding in findings.values()), 3.0)
    axes.yaxis.set_major_locator(LogLocator(numticks=9))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlim(0 if scale == "linear" else 1, count * 1.02)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]) if scale == "linear" else LogLocator())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    label(axes, "number of the singular value", "size, relative to the largest")
    return svg(figure, f"spectrum-{scale}", "Singular values", "sorted, on a logarithmic scale, one line per run")


def _draw(axes: Axes, finding: Finding, ink: str) -> None:
    values = finding.spectrum.singular_values
    relative = np.maximum(values / values[0], 1e-300)
    shown = visible(relative)
    resolved = shown[values[shown] > finding.spectrum.error]
    axes.plot(resolved + 1, relative[resolved], color=ink, linewidth=1.6)
    noise = shown[len(resolved) - 1 :]
    axes.plot(noise + 1, relative[noise], color=ink, linewidth=1.0, alpha=0.35)


def visible(values: np.ndarray, limit: int = 400) -> np.ndarray:
    """Indices that keep the shape of a falling curve: all of a short one, else even ones and both sides of steps."""
    count = len(values)
    if count <= limit:
        return np.arange(count)
    steps = np.argsort(np.diff(np.log(values)))[: limit // 8]
    even = np.linspace(0, count - 1, limit // 2).astype(int)
    near = np.geomspace(1, count, limit // 4).astype(int) - 1
    return np.unique(np.concatenate([even, near, steps, steps + 1]))


def _floor(finding: Finding) -> float:
    """The lower end of the axis: the smallest value or, where that is noise, a little below the level of the noise."""
    values = finding.spectrum.singular_values
    lowest = max(float(values[-1]), 0.03 * finding.spectrum.error)
    return 0.3 * min(lowest, finding.threshold) / float(values[0])


def _mark_bounds(axes: Axes, bounds: Sequence[int]) -> None:
    for place, bound in enumerate(bounds):
        axes.axvline(bound, color=MUTED, linewidth=1, linestyle=(0, (1, 2)))
        axes.annotate(
            f"{bound:,}", (bound, 1), (3, -9 - 11 * place), ("data", "axes fraction"), "offset points",
            color=MUTED, fontsize=8.5,
        )  # fmt: skip


def _tables(findings: Mapping[str, Finding]) -> list[Section]:
    header = ["run", "d", "V", "T", "rank", "bound", "one softmax", "", "outputs", "method", "error / σ₁", "seconds"]
    rows = [rank_row(name, finding) for name, finding in findings.items()]
    note = f"The rank is the number of singular values above {RULE}, with ε of the precision of the outputs."
    ranks = Section("Ranks", tables=[Table("", header, rows, note)])
    header = ["run", *(f"{factor:g} ε" for factor in FACTORS)]
    rows = [[name, *(rank_text(s.rank, s.at_least) for s in found.sensitivity)] for name, found in findings.items()]
    text = "A rank that hardly changes with the threshold marks a drop in the singular values, any other a slope."
    return [ranks, Section("How much the threshold matters", text=[text], tables=[Table("", header, rows)])]


def rank_row(name: str, finding: Finding) -> list[str]:
    """The cells of a run in the table of ranks."""
    found = finding.spectrum
    return [
        name,
        f"{finding.size:,}",
        f"{found.num_words:,}",
        f"{found.num_tokens:,}",
        rank_text(finding.rank, finding.at_least),
        "none" if finding.bound is None else f"{finding.bound:,}",
        f"{finding.softmax_bound:,}",
        {True: "exceeds", None: "unknown", False: "within"}[finding.exceeds],
        found.dtype,
        found.method,
        f"{found.error / found.singular_values[0]:.0e}",
        f"{finding.seconds:.1f}",
    ]
