"""elman sweep: a recipe with several values of its keys and several seeds, and which are best."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from elman.cli import progress, show
from elman.cli.groups import Common
from elman.cli.launching import LaunchOptions
from elman.cli.options import DataSource, Natural, Positive, Tracked, trackers_of_runs, writable
from elman.config.plugins import resuming
from elman.config.toml import resolve
from elman.errors import UserError
from elman.jobs.launching import Tell
from elman.study.runner import Count, Stopped

if TYPE_CHECKING:
    from rich.console import Console

    from elman.study.runs import Machine, PlannedRun, Watch
    from elman.study.sweep.conduct import Advance, Result
    from elman.study.sweep.question import Sweep

Varied = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        metavar="KEY=VALUE[,VALUE]",
        help="set a key of the recipe, or try several values of it: training.clip=0.25,0.5; with --search random or"
        " optuna also a range: log:1e-4..1e-1, float:0.1..0.5, int:100..800/50; may be repeated",
    ),
]


def sweep(
    recipe: Path | None = None,
    /,
    *,
    settings: Varied = (),
    seeds: str | None = None,
    search: str = "grid",
    trials: Positive | None = None,
    seed: Natural = 0,
    data: DataSource = None,
    out: Annotated[Path | None, Parameter(metavar="DIR", validator=writable)] = None,
    resume: bool = False,
    dry_run: bool = False,
    track: Tracked = None,
    launching: LaunchOptions = LaunchOptions(),
    common: Common = Common(),
) -> int:
    """Train a recipe with other settings and seeds, and find the best.

    Every combination of the values after --set is trained with every seed, or, with --search random and optuna, as many
    as --trials. Settings are compared by the validation split alone. Writes into --out the runs, best.toml (the recipe
    of the best setting), sweep.json and report.html; prints a table with the mean over seeds and paired tests of the
    best against the others. The same command continues what was stopped. Example: elman sweep
    recipes/shakespeare/demo.toml --set model.output.activation=softmax,sigsoftmax --seeds 1-3 --out runs/outputs

    Args:
        recipe: a TOML recipe (`elman recipes`)
        seeds: seeds of every setting, as 1-5 or 1,2,7 (default: 1)
        search: grid (every combination), random, or optuna, which proposes settings from the results so far and ends
            runs that are worse than the median
        trials: settings that random and optuna try (default: 20)
        seed: of the search
        data: data of every run, as for `elman train`
        out: the folder of runs and results (default: runs/sweep-NAME-OF-RECIPE)
        resume: continue the sweep in --out without repeating its RECIPE and --set
        dry_run: list the runs and estimate their time; nothing is trained
    """
    from elman.data.catalog.known import is_known
    from elman.study.runs import Machine
    from elman.study.sweep.conduct import conduct
    from elman.study.sweep.question import TRIALS, Question, open_sweep, parse_seeds, reopen_sweep, with_more
    from elman.study.sweep.space import parse_settings

    if common.precision is not None:
        raise UserError("--precision: the runs have the precision of their recipe; use --set training.precision=bf16")
    common.place()
    chosen = None if seeds is None else parse_seeds(seeds)
    if recipe is None:
        if not resume:
            raise UserError("RECIPE is missing; give one, such as recipes/shakespeare/demo.toml, or --resume --out DIR")
        if out is None:
            raise UserError("--resume needs --out DIR, the folder of the sweep")
        given = {"--set": bool(settings), "--search": search != "grid", "--seed": seed != 0, "--data": data is not None}
        for name in (name for name, is_given in given.items() if is_given):
            raise UserError(f"{name}: the sweep in {out} has its own; leave it out, or give the RECIPE too")
        asked = with_more(reopen_sweep(out), chosen, trials)
    else:
        recipe = resolve(recipe)
        out = out or Path("runs") / f"sweep-{recipe.stem}"
        if resume and not out.is_dir():
            raise UserError(f"--resume: there is no folder {out}; leave --resume out to begin")
        if search not in ("grid", "random", "optuna"):
            raise UserError(f"--search {search}: choose grid, random or optuna")
        if search == "grid" and trials is not None:
            raise UserError("--trials belongs to --search random or optuna; a grid tries every combination")
        space = parse_settings(settings)
        if search != "grid" and not space.axes:
            raise UserError(f"--search {search}: there is nothing to vary; give --set KEY=VALUE,VALUE or a range")
        question = Question(
            space=space,
            search=search,  # type: ignore[arg-type]
            trials=None if search == "grid" else trials or TRIALS,
            seeds=chosen or (1,),
            sampler_seed=seed,
            data=data if data is None or is_known(data) else str(Path(data).absolute()),
        )
        asked = open_sweep(out, recipe, question)
    launch = launching.launch(asked.out, common.device)
    machine = Machine(launch, common.device, common.threads, trackers_of_runs(track))
    if dry_run:
        _dry_run(asked, machine, as_json=common.as_json)
        return 0
    console = progress.log()
    try:
        with _shown(console) as (tell, watch, advance):
            result = conduct(asked, machine, tell, watch, advance)
    except Stopped:
        console.print(f"stopped and saved; continue with: {resuming('sweep', asked.out)}")
        return 130
    _print(asked, result, as_json=common.as_json)
    if result.found.failed:
        is_final = asked.question.search == "optuna"
        later = "a failed trial of Optuna is not tried again" if is_final else "the same command tries them again"
        console.print(f"{result.found.failed} runs failed; {later}")
    return 1 if result.found.failed else 0


@contextlib.contextmanager
def _shown(console: "Console") -> Iterator[tuple[Tell, "Watch", "Advance"]]:
    """How lines and the progress are printed: a bar on a terminal, else a line every half minute."""
    from elman.study.runs import reporting

    if not console.is_terminal:
        yield console.print, reporting(console.print), lambda *_: None
        return
    with progress.bar("{task.fields[state]}") as bar:
        task = bar.add_task("runs", total=None, state="")

        def watch(count: "Count[PlannedRun]") -> None:
            left = count.seconds_left
            time = "" if left is None else f", {progress.duration(left)} left"
            failed = f", {count.failed} failed" if count.failed else ""
            state = f"{count.ended} of {count.total} done, {len(count.running)} running{failed}{time}"
            bar.update(task, completed=count.ended, total=count.total, state=state)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, state="settings checked or compared")

        yield bar.console.print, watch, advance


def _dry_run(asked: "Sweep", machine: "Machine", *, as_json: bool) -> None:
    """List the runs with their states and the minutes of each."""
    from elman.study.sweep.conduct import Everything, minutes_of
    from elman.study.sweep.proposals import ended_trials
    from elman.study.sweep.question import TRIALS

    question, tried = asked.question, Everything(asked).tried
    with progress.counting("timing a few steps") as advance:
        minutes = minutes_of(asked, machine, advance)
    facts = [
        {"label": run.label, "seed": run.recipe.seed, "state": run.status.value, "folder": str(run.folder),
         "minutes": minutes[run.label]} for one in tried for run in one.runs
    ]  # fmt: skip
    rows = [[str(one["label"]), str(one["seed"]), str(one["state"]), f"{one['minutes']:.1f}"] for one in facts]
    waiting = [minutes[run.label] for one in tried for run in one.runs if run.is_open]
    left, total = len(waiting), sum(waiting)
    note = f"{len(tried)} settings, {len(question.seeds)} seeds: {len(rows)} runs, {left} to train."
    if question.search == "optuna":
        trials, ended = question.trials or TRIALS, ended_trials(asked.out)
        left = max(0, trials - ended) * len(question.seeds)
        total = left * sum(minutes.values()) / len(minutes)
        note = (
            f"Optuna: {trials} trials, {ended} ended, {left} runs left; listed are settings at the ends of all ranges."
        )
    together = max(1, min(machine.launch.at_once, left))
    time = f"About {total / together:.1f} minutes, {together} in parallel, at the speed of this machine."
    found = {"question": msgspec.to_builtins(question), "runs": facts, "minutes": total / together}
    table = (str(asked.out), ["setting", "seed", "state", "minutes"], rows)
    show.print_result(as_json, found, table, notes=[note, time])


def _print(asked: "Sweep", result: "Result", *, as_json: bool) -> None:
    from elman.study.sweep.found import reported

    found, notes = result.found, [result.found.line()]
    if found.best_test is not None:
        notes.append(f"Its test {found.scale.name}: {reported(found.scale, found.best_test)}.")
    notes += [*([] if result.best is None else [f"best: {result.best}"]), f"report: {result.page}"]
    facts = {"out": str(asked.out), **found.facts(), "report": str(result.page)}
    show.print_result(as_json, facts, (asked.name, found.header(), found.table()), notes=notes)
