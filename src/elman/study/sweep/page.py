"""The page of a sweep: the table, every seed of every setting, figures by the value of each key, validation curves."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from elman.drawing.dots import Row as Dots
from elman.drawing.dots import draw_dots
from elman.drawing.page import Figure, Section, Table, write_page
from elman.drawing.style import MUTED, SERIES, canvas, colour, label, legend, svg
from elman.study.figures import SEEDS_AND_MEAN, training_curves
from elman.study.runs import PlannedRun
from elman.study.sweep.found import Found, Row
from elman.study.sweep.question import Sweep
from elman.study.sweep.space import Axis, Range, Values, short_names

BEST, PAGE = "best.toml", "report.html"  # in the folder of a sweep: the recipe of the best setting, and the page
MOST_DOTS, MOST_CURVES = 40, len(SERIES)  # settings whose seeds are drawn, and those with curves

CHOICE = (
    "Settings are compared on the validation split alone; the one with the lowest mean over its seeds is the best. The"
    " figure of the best setting is too low on average, since the lowest of several was taken; its figures on the test"
    " split, which took no part in the choice, are free of that."
)
TESTS = (
    "The tests compare the best setting with each of the others: {what}, with the 95 % interval and p-value of a paired"
    " t test{on}, paired by seed; Holm: adjusted for the number of settings. By token: a t test over blocks of the"
    " validation text, each setting the mean of its seeds. As the best was chosen by the same text, p-values are too"
    " small; they show which settings are as good as the best."
)


def write_sweep_page(sweep: Sweep, found: Found, runs: Mapping[str, Sequence[PlannedRun]]) -> Path:
    question, about = sweep.question, [CHOICE, *([reading_of_tests(found)] if found.is_tested else [])]
    if found.best is not None and found.best_test is not None:
        shown = ", ".join(f"{found.scale.of(nll):,.4g}" for nll in found.best_test)
        about.append(f"The best setting on the test split: {found.scale.name} {shown}, by seed.")
    fixed = f" Set for all: {', '.join(question.space.fixed)}." if question.space.fixed else ""
    note = f"Mean ± sample standard deviation over the seeds {', '.join(map(str, question.seeds))}.{fixed}"
    sections = [Section("Settings", about, tables=[Table("", found.header(), found.table(), note)]), _every_seed(found)]
    if figures := _by_value(question.space.axes, found):
        sections.append(Section("Figures by value", figures=figures))
    curves = {row.label: runs[row.label] for row in found.rows[:MOST_CURVES]}
    if (drawing := training_curves("sweep", curves)) is not None:
        which = [f"The {len(curves)} best settings."] if len(curves) < len(found.rows) else []
        trained = [Figure("", drawing, SEEDS_AND_MEAN)]
        sections.append(Section("Validation while training", which, legend(curves), trained))
    failures = [[row.label, str(seed), failure] for row in found.rows for seed, failure in sorted(row.failures.items())]
    if failures:
        sections.append(Section("Failed", tables=[Table("", ["setting", "seed", "failure"], failures, prose=True)]))
    return write_page(
        sweep.out / PAGE, kind=f"Sweep, {question.search} search",
        title=next((run.recipe.title for each in runs.values() for run in each), "a sweep"), verdict=found.line(),
        text=[f"The recipe of the best setting is {BEST}, in the folder of this page."] if found.best else [],
        sections=sections,
    )  # fmt: skip


def reading_of_tests(found: Found) -> str:
    """How the tests are to be read: of perplexities ratios, of nats, which may be negative, differences."""
    if found.scale.in_perplexity:
        return TESTS.format(what="the ratio of their perplexities, best / other", on=" on logarithms")
    return TESTS.format(what=f"the difference of their {found.scale.measure}, best - other", on="")


def _values(found: Found, row: Row) -> list[float]:
    return [found.scale.of(nll) for nll in row.known if math.isfinite(nll)]


def _every_seed(found: Found) -> Section:
    rows = [Dots(row.label, values) for row in found.rows if (values := _values(found, row))][:MOST_DOTS]
    if not rows:
        return Section("Every seed", ["No run is finished."])
    dots = draw_dots(rows, f"valid {found.scale.name}")
    best = f"; the {len(rows)} best" if len(rows) == MOST_DOTS else ""
    drawing = svg(dots, "seeds", "Figures by seed", "one dot per seed, one row per setting")
    return Section("Every seed", figures=[Figure("", drawing, f"A dot per seed, a line at their mean{best}.")])


def _by_value(varied: Mapping[str, Axis], found: Found) -> list[Figure]:
    """For every key whose values are numbers, more than two where they are listed, the figure of each setting."""
    rows, figures = [row for row in found.rows if row.mean is not None and math.isfinite(row.mean)], list[Figure]()
    if len(rows) < 3:
        return []
    for key, name in short_names([*varied]).items():
        axis = varied[key]
        try:
            values = [float(row.settings[key]) for row in rows]
        except ValueError:
            continue
        if isinstance(axis, Values) and len(axis.texts) < 3:
            continue
        figure, axes = canvas("wide")
        for value, row in zip(values, rows, strict=True):
            seeds = _values(found, row)
            axes.plot([value] * len(seeds), seeds, "o", color=colour(0), alpha=0.6, markersize=4.5)
        best = sum(_values(found, rows[0])) / len(rows[0].nll)
        axes.plot(values[:1], [best], "D", color=MUTED, markerfacecolor="none")
        if isinstance(axis, Range) and axis.scale == "log":
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=6))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
        label(axes, name, f"valid {found.scale.name}")
        words = "a dot per seed of each setting; the diamond is the mean of the best"
        place = "by-" + "".join(c if c.isalnum() else "-" for c in key)
        figures.append(Figure(name, svg(figure, place, f"Figures by {key}", words)))
    return figures
