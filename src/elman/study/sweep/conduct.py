"""A sweep from its question to its best recipe: check, train what is missing, compare, write."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from elman.config.record import TOKENS
from elman.config.toml import dump_recipe
from elman.drawing.dots import Row as Dots
from elman.drawing.dots import draw_dots
from elman.drawing.page import Figure, Section, Table, write_page
from elman.drawing.style import MUTED, SERIES, canvas, colour, label, legend, svg
from elman.errors import UserError, notice
from elman.files import write_atomic
from elman.jobs.launching import Tell
from elman.jobs.locks import FolderLock
from elman.network.device import choose_device
from elman.study.figures import SEEDS_AND_MEAN, training_curves
from elman.study.runner import Programme, Stopped, carry_out
from elman.study.runs import Machine, PlannedRun, Watch, results_by_split
from elman.study.sweep.found import Found, Row, Tried, ranked, with_tests
from elman.study.sweep.proposals import Proposals
from elman.study.sweep.question import Sweep, left_out, write_question
from elman.study.sweep.space import Axis, Range, Values, short_names
from elman.tasks.experiment import Experiment

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
    return [found.scale.of(nll) if math.isfinite(nll) else math.inf for nll in row.known]


def _every_seed(found: Found) -> Section:
    rows = [Dots(row.label, _values(found, row)) for row in found.rows if any(map(math.isfinite, row.known))]
    rows = rows[:MOST_DOTS]
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


Advance = Callable[[int, int], None]


class Everything(Programme[PlannedRun]):
    """All runs of the settings that are known: the first seed of each, then the second, and so on."""

    lenient = True

    def __init__(self, sweep: Sweep) -> None:
        self.tried = [Tried(setting, sweep.runs(setting)) for setting in sweep.question.settings()]
        super().__init__(run for each in zip(*(one.runs for one in self.tried), strict=True) for run in each)
        places = dict[Path, str]()
        for first in (one.runs[0] for one in self.tried):
            if first.folder in places:
                raise UserError(f"{places[first.folder]} and {first.label} are the same recipe; leave one of them out")
            places[first.folder] = first.label

    def ended(self, run: PlannedRun, failure: str | None) -> None:
        if failure is not None:
            next(one for one in self.tried if run.folder in one.folders).failures[run.recipe.seed] = failure


class Result(NamedTuple):
    """What is found, and the files of it; `best` is None while no setting is finished."""

    found: Found
    page: Path
    best: Path | None


def conduct(sweep: Sweep, machine: Machine, tell: Tell, watch: Watch, advance: Advance) -> Result:
    """Train what is not trained yet, choose the best setting, and write `sweep.json`, `best.toml` and the page.

    Every setting whose runs have not begun is built on its data first. One process at a time owns the folder. What is
    found so far is written too where a signal stops the sweep. Raises Stopped then; UserError where a setting cannot be
    trained, which it names, before any is, or the folder is in use.
    """
    with FolderLock(sweep.out):
        search = Proposals(sweep, tell) if sweep.question.search == "optuna" else Everything(sweep)
        device = choose_device(machine.device)
        for run in _first_runs(sweep, advance):
            if run.is_open and not (run.folder / "recipe.toml").exists():
                try:
                    Experiment(run.recipe, run.folder, device=device)
                except UserError as error:
                    raise UserError(f"{run.label}: {error}") from None
        if gone := left_out(sweep):
            notice(f"{sweep.out}: this sweep had {', '.join(gone)} too, left out now; their runs are kept")
        write_question(sweep, {})
        try:
            carry_out(search, lambda run: run.work(machine), machine.launch, tell, watch)
        except Stopped:
            write(sweep, search, advance, over=False)
            raise
        return write(sweep, search, advance, over=True)


def _first_runs(sweep: Sweep, advance: Advance) -> Iterator[PlannedRun]:
    settings = sweep.question.settings()
    for place, setting in enumerate(settings):
        advance(place, len(settings))
        yield sweep.run(setting, sweep.question.seeds[0])


def minutes_of(sweep: Sweep, machine: Machine, advance: Advance) -> dict[str, float]:
    """Minutes of one run of every setting that is known before training, from a few timed steps, by its label."""
    device = choose_device(machine.device)
    return {run.label: sweep.store.minutes_of(run, device) for run in _first_runs(sweep, advance)}


def write(sweep: Sweep, search: Everything | Proposals, advance: Advance, *, over: bool) -> Result:
    """Compare what is trained, and write the files of the sweep; where it is over, the best is tested too."""
    pairs = ranked(sweep, list({one.setting: one for one in search.tried}.values()))
    rows = with_tests(pairs, advance) if over else [row for row, _ in pairs]
    runs = {row.label: one.runs for row, one in pairs}
    best = rows[0] if rows and rows[0].mean is not None and math.isfinite(rows[0].mean) else None
    tested = runs[best.label] if over and best is not None else None
    found = Found(
        rows=rows, best=best,
        best_test=None if tested is None else [results_by_split(run.folder)["test"].nll for run in tested],
        scale=search.tried[0].runs[0].recipe.data.reporting if search.tried else TOKENS,
    )  # fmt: skip
    page, path = write_sweep_page(sweep, found, runs), None
    if best is not None:  # with its first seed and its data, for `elman train`
        path = sweep.out / BEST
        write_atomic(path, dump_recipe(runs[best.label][0].recipe))
    write_question(sweep, {**found.facts(), "over": over})
    return Result(found, page, path)
