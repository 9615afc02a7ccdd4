"""A sweep from its question to its best recipe: check, train what is missing, compare, write."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from elman.errors import UserError, notice
from elman.jobs.launching import Tell
from elman.jobs.locks import FolderLock
from elman.network.device import choose_device
from elman.reproduce.planned import UNTRAINED
from elman.reproduce.training import Machine, Stopped, Watch, train_programme
from elman.sweep.outcome import ranked, with_tests
from elman.sweep.page import write_sweep_page
from elman.sweep.question import Sweep, left_out, write_question
from elman.sweep.record import Found, found_of, write_best
from elman.sweep.search import Search, search_of
from elman.sweep.space import Setting
from elman.tasks.experiment import Experiment

Advance = Callable[[int, int], None]


class Result(NamedTuple):
    """What is found, and the files of it; `best` is None while no setting is finished."""

    found: Found
    page: Path
    best: Path | None


def conduct(sweep: Sweep, machine: Machine, tell: Tell, watch: Watch, advance: Advance) -> Result:
    """Train what is not trained yet, choose the best setting, and write `sweep.json`, `best.toml` and the page.

    One process at a time owns the folder. What is found so far is written too where a signal stops the sweep. Raises
    Stopped then; UserError where a setting cannot be trained, before any is, or the folder is in use.
    """
    with FolderLock(sweep.out):
        search = search_of(sweep, tell)
        check(sweep, machine, advance)
        if gone := left_out(sweep):
            notice(f"{sweep.out}: this sweep had {', '.join(gone)} too, left out now; their runs are kept")
        write_question(sweep, {})
        try:
            train_programme(search, machine, tell, watch)
        except Stopped:
            write(sweep, search, advance, over=False)
            raise
        return write(sweep, search, advance, over=True)


def check(sweep: Sweep, machine: Machine, advance: Advance) -> None:
    """Build every setting whose runs have not begun, on its data; of Optuna's, those at the ends of all ranges.

    Raises UserError, which names the setting, where one cannot be trained.
    """
    settings, device = known_settings(sweep), choose_device(machine.device)
    for place, setting in enumerate(settings):
        advance(place, len(settings))
        run = sweep.run(setting, sweep.question.seeds[0])
        if run.status in UNTRAINED and not (run.folder / "recipe.toml").exists():
            try:
                Experiment(run.recipe, run.folder, device=device)
            except UserError as error:
                raise UserError(f"{run.label}: {error}") from None


def known_settings(sweep: Sweep) -> list[Setting]:
    """The settings that are known before training: all, or of Optuna's those at the ends of all ranges."""
    question = sweep.question
    return question.space.extremes() if question.search == "optuna" else question.settings()


def write(sweep: Sweep, search: Search, advance: Advance, *, over: bool) -> Result:
    """Compare what is trained, and write the files of the sweep."""
    pairs = ranked(sweep, list({one.setting: one for one in search.tried}.values()))
    rows = with_tests(pairs, advance) if over else [row for row, _ in pairs]
    runs = {row.label: one.runs for row, one in pairs}
    kind = search.tried[0].runs[0].recipe.kind if search.tried else "text"
    found = found_of(rows, runs, kind, over=over)
    page = write_sweep_page(sweep, found, runs)
    best = None if found.best is None else write_best(sweep, runs[found.best.label])
    write_question(sweep, {**found.facts(), "over": over})
    return Result(found, page, best)


def minutes_of(sweep: Sweep, machine: Machine, advance: Advance) -> list[tuple[str, float]]:
    """Minutes of one run of every setting that is known before training, from a few timed steps, by its label."""
    device, found = choose_device(machine.device), list[tuple[str, float]]()
    settings = known_settings(sweep)
    for place, setting in enumerate(settings):
        advance(place, len(settings))
        run = sweep.run(setting, sweep.question.seeds[0])
        found.append((run.label, sweep.store.minutes_of(run, device)))
    return found


def with_more(sweep: Sweep, seeds: tuple[int, ...] | None, trials: int | None) -> Sweep:
    """The sweep with other seeds or another number of trials."""
    question = sweep.question
    if trials is not None and question.search == "grid":
        raise UserError("--trials belongs to --search random or optuna; a grid tries every combination")
    if seeds is not None and question.search == "optuna" and seeds != question.seeds:
        raise UserError("--seeds: the trials of Optuna have the seeds with which the sweep began; leave it out")
    changed = msgspec.structs.replace(question, seeds=seeds or question.seeds, trials=trials or question.trials)
    return Sweep(sweep.out, sweep.tables, changed, sweep.name)
