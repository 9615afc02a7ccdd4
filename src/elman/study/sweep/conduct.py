"""A sweep from its question to its best recipe: check, train what is missing, compare, write."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from elman.config.record import TOKENS
from elman.config.toml import dump_recipe
from elman.errors import UserError, notice
from elman.files import write_atomic
from elman.jobs.launching import Tell
from elman.jobs.locks import FolderLock
from elman.network.device import choose_device
from elman.study.runner import Programme, Stopped, carry_out
from elman.study.runs import Machine, PlannedRun, Watch, rows_by_split
from elman.study.sweep.found import Found, Tried, ranked, with_tests
from elman.study.sweep.page import BEST, write_sweep_page
from elman.study.sweep.proposals import Proposals
from elman.study.sweep.question import Sweep, left_out, write_question
from elman.tasks.experiment import Experiment

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
        best_test=None if tested is None else [float(rows_by_split(run.folder)["test"]["nll"]) for run in tested],
        scale=search.tried[0].runs[0].recipe.data.reporting if search.tried else TOKENS,
    )  # fmt: skip
    page, path = write_sweep_page(sweep, found, runs), None
    if best is not None:  # with its first seed and its data, for `elman train`
        path = sweep.out / BEST
        write_atomic(path, dump_recipe(runs[best.label][0].recipe))
    write_question(sweep, {**found.facts(), "over": over})
    return Result(found, page, path)
