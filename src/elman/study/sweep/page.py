"""The page of a sweep: the table, every seed of every setting, figures by the value of each key, validation curves."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import Markup
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from elman.drawing.dots import Row as Dots
from elman.drawing.dots import draw_dots
from elman.drawing.page import Figure, Section, Table, write_page
from elman.drawing.style import MUTED, SERIES, canvas, colour, label, legend, svg
from elman.study.figures import SEEDS_AND_MEAN, training_curves
from elman.study.runs import PlannedRun
from elman.study.sweep.found import Found, Row
from elman.study.sweep.question import Sweep, numbers_of
from elman.study.sweep.space import Range, Setting, short_names

BEST, PAGE = "best.toml", "report.html"
"""In the folder of a sweep: the recipe of the best setting, and the page."""

MOST_DOTS, MOST_CURVES = 40, len(SERIES)
"""Settings whose seeds are drawn, and those with curves."""

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
    tested = any(row.test is not None for row in found.rows)
    failures = [[row.label, str(seed), failure] for row in found.rows for seed, failure in sorted(row.failures.items())]
    sections = [
        Section(
            "Settings",
            [CHOICE, *([reading_of_tests(found)] if tested else []), *_test_line(found)],
            tables=[Table("", found.header(), found.table(), _note(sweep))],
        ),
        _every_seed(found),
        *_by_value(sweep, found),
        *_curves(found, runs),
    ]
    if failures:
        sections.append(Section("Failed", tables=[Table("", ["setting", "seed", "failure"], failures, prose=True)]))
    return write_page(
        sweep.out / PAGE, kind=f"Sweep, {sweep.question.search} search", title=_title(runs), verdict=found.line(),
        text=[f"The recipe of the best setting is {BEST}, in the folder of this page."] if found.best else [],
        sections=sections,
    )  # fmt: skip


def reading_of_tests(found: Found) -> str:
    """How the tests are to be read: of perplexities ratios, of nats, which may be negative, differences."""
    if found.scale.in_perplexity:
        return TESTS.format(what="the ratio of their perplexities, best / other", on=" on logarithms")
    return TESTS.format(what=f"the difference of their {found.scale.measure}, best - other", on="")


def _title(runs: Mapping[str, Sequence[PlannedRun]]) -> str:
    return next((run.recipe.title for each in runs.values() for run in each), "a sweep")


def _note(sweep: Sweep) -> str:
    fixed = f" Set for all: {', '.join(sweep.question.space.fixed)}." if sweep.question.space.fixed else ""
    return f"Mean ± sample standard deviation over the seeds {', '.join(map(str, sweep.question.seeds))}.{fixed}"


def _test_line(found: Found) -> list[str]:
    if found.best is None or found.best_test is None:
        return []
    values = [found.scale.of(nll) for nll in found.best_test]
    shown = ", ".join(f"{value:,.4g}" for value in values)
    return [f"The best setting on the test split: {found.scale.name} {shown}, by seed."]


def _values(found: Found, row: Row) -> list[float]:
    return [found.scale.of(nll) for nll in row.nll if nll is not None and math.isfinite(nll)]


def _every_seed(found: Found) -> Section:
    shown = [row for row in found.rows if _values(found, row)][:MOST_DOTS]
    rows = [Dots(row.label, _values(found, row)) for row in shown]
    if not rows:
        return Section("Every seed", ["No run is finished."])
    name = f"valid {found.scale.name}"
    drawing = svg(draw_dots(rows, name), "seeds", "Figures by seed", "one dot per seed, one row per setting")
    note = f"A dot per seed, a line at their mean; the {len(rows)} best." if len(rows) == MOST_DOTS else ""
    return Section("Every seed", figures=[Figure("", drawing, note or "A dot per seed, a line at their mean.")])


def _by_value(sweep: Sweep, found: Found) -> list[Section]:
    rows = [row for row in found.rows if row.mean is not None and math.isfinite(row.mean)]
    settings = [Setting(tuple(row.settings.items())) for row in rows]
    names, figures = short_names([*sweep.question.space.axes]), list[Figure]()
    for key, axis in sweep.question.space.axes.items():
        values = numbers_of(sweep, key, settings)
        if values and len(rows) > 2:
            logarithmic = isinstance(axis, Range) and axis.scale == "log"
            figures.append(Figure(names[key], _scatter(found, rows, key, names[key], values, logarithmic)))
    return [Section("Figures by value", figures=figures)] if figures else []


def _scatter(
    found: Found, rows: Sequence[Row], key: str, name: str, values: Sequence[float], logarithmic: bool
) -> Markup:
    figure, axes = canvas("wide")
    for value, row in zip(values, rows, strict=True):
        seeds = _values(found, row)
        axes.plot([value] * len(seeds), seeds, "o", color=colour(0), alpha=0.6, markersize=4.5)
    axes.plot([values[0]], [sum(_values(found, rows[0])) / len(rows[0].nll)], "D", color=MUTED, markerfacecolor="none")
    if logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=6))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    label(axes, name, f"valid {found.scale.name}")
    words = "a dot per seed of each setting; the diamond is the mean of the best"
    return svg(figure, "by-" + "".join(c if c.isalnum() else "-" for c in key), f"Figures by {key}", words)


def _curves(found: Found, runs: Mapping[str, Sequence[PlannedRun]]) -> list[Section]:
    shown = {row.label: runs[row.label] for row in found.rows[:MOST_CURVES]}
    drawing = training_curves("sweep", shown)
    if drawing is None:
        return []
    which = [f"The {len(shown)} best settings."] if len(shown) < len(found.rows) else []
    return [Section("Validation while training", which, legend(shown), [Figure("", drawing, SEEDS_AND_MEAN)])]
