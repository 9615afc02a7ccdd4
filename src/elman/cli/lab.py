"""elman lab: networks and learning rules side by side on classic tasks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter
from msgspec import Meta

from elman.cli import progress, show
from elman.cli.help import family
from elman.cli.launching import LaunchOptions
from elman.cli.options import AsJson, Natural, Positive, file_to_write, group, number, writable
from elman.errors import UserError
from elman.files import making, require_own
from elman.study.runner import Stopped

if TYPE_CHECKING:
    from elman.data.classic.task import ClassicTask
    from elman.study.lab.conduct import Chain

app = family(
    "lab",
    "Classic tasks of recurrent learning: adding, copying, Reber's grammars, counting and others, and the networks"
    " and learning rules that were made for them (docs/stability.md).",
)

_LISTED = {"tasks": "tasks", "cells": "cells", "rules": "cells"}  # the listing that shows what an option may name

Budget = Annotated[float, number(float, Meta(ge=0.1))]


@group("Trials", 2)
class TrialOptions:
    """How trials are run.

    Attributes:
        out: folder of outcomes and page; finished trials in it are not repeated (default: runs/lab-compare,
            runs/lab-lesson).
    """

    out: Annotated[Path | None, Parameter(metavar="DIR", validator=writable)] = None
    as_json: AsJson = False

    def conduct(
        self, command: str, chains: "list[Chain]", launching: LaunchOptions, title: str, text: list[str]
    ) -> None:
        """Run the trials that are not finished, print the outcomes of all, and write the page."""
        from elman.data.classic import classic_task
        from elman.study.lab.conduct import conduct, summarise, to_builtins
        from elman.study.lab.networks import build_network, learner_of
        from elman.study.lab.page import table, verdict, write_laboratory

        for trial in {msgspec.structs.replace(chain.first, seed=0) for chain in chains}:  # what does not exist or fit
            model = build_network(classic_task(trial.task), trial.cell, trial.size)
            learner_of(model, trial.rule).check(model, trial.columns)
        out = self.out or Path("runs") / f"lab-{command}"
        require_own(out, "trials")
        launch = launching.launch(out)
        with making(out):
            try:
                results = conduct(chains, out, launch, progress.log().print)
            except Stopped:
                raise KeyboardInterrupt from None
            page = write_laboratory(out / "report.html", results, title=title, text=text)
        rows = summarise(results)
        facts = {**to_builtins(results), "report": str(page)}
        show.print_result(self.as_json, facts, (title, *table(rows)), notes=[verdict(rows), f"report: {page}"])


@app.command(name="tasks")
def list_tasks(*, as_json: AsJson = False) -> None:
    """All tasks.

    The tasks for `elman lab compare --tasks`: what is to be learnt, the first span of a comparison, the error below
    which a task counts as learnt, and the error of guessing. --json adds the source and whether symbols or values are
    predicted. Example: elman lab tasks
    """
    from elman.data.classic import TASKS

    fields = ("name", "sentence", "source", "kind", "span", "solved", "chance")
    facts = [{field: getattr(task, field) for field in fields} for task in TASKS.values()]
    header = ["task", "what is to be learnt", "first span", "learnt below", "chance"]
    rows = [[str(fact[key]) for key in ("name", "sentence", "span", "solved", "chance")] for fact in facts]
    show.print_result(as_json, facts, ("classic tasks", header, rows))


@app.command(name="cells")
def list_cells(*, as_json: AsJson = False) -> None:
    """All networks and rules.

    The networks for `elman lab compare --cells` and the learning rules for --rules, each with its source.
    Example: elman lab cells
    """
    from elman.study.lab.networks import NETWORKS, RULES

    facts = {"cells": {name: network.sentence for name, network in NETWORKS.items()}, "rules": RULES}
    tables = [(name, [name[:-1], "what it is"], [[*row] for row in found.items()]) for name, found in facts.items()]
    show.print_result(as_json, facts, *tables)


@app.command
def compare(
    *,
    tasks: str = "adding",
    cells: str = "elman,lstm,gru",
    rules: str = "bptt",
    span: Positive | None = None,
    longest: Positive = 1024,
    size: Positive = 64,
    columns: Positive = 32,
    lr: Annotated[float, number(float, Meta(gt=0))] = 3e-3,
    seeds: Positive = 3,
    budget: Budget = 60.0,
    trials: TrialOptions = TrialOptions(),
    launching: LaunchOptions = LaunchOptions(),
) -> None:
    """Cells x rules x tasks: the span at which each still learns.

    Train every cell by every rule on every task. Each begins at the task's first span and, when it has learnt that,
    starts again at twice the span, until it fails within --budget or --longest is reached. Prints the longest span
    learnt, by seed, with steps, error, weights and seconds. Writes into --out each outcome as JSON under trials/, and
    report.html with learning curves and the errors propagated back in time. The same command continues what was
    stopped. Example: elman lab compare --tasks adding,copying --cells elman,lstm,gru --out runs/lab

    Args:
        tasks: tasks with commas between, as `elman lab tasks` shows
        cells: networks, as `elman lab cells` shows
        rules: learning rules, as `elman lab cells` shows
        span: the first span; it is doubled later (default: the task's)
        longest: the last span
        size: units per layer
        columns: new sequences per step
        lr: learning rate of Adam
        seeds: number of seeds, from 0
        budget: seconds of processor time per trial
    """
    from elman.data.classic import classic_task
    from elman.study.lab.conduct import Chain
    from elman.study.lab.trial import Trial

    chains = []
    for task in map(classic_task, _names("tasks", tasks)):
        first = span or task.span
        if longest < first:
            raise UserError(f"--longest is {longest}; it must be {first} or more")
        _require_spans(task, span=first, longest=longest)
        for cell in _names("cells", cells):
            for rule in _names("rules", rules):
                trial = Trial(
                    task=task.name, cell=cell, rule=rule, span=first, size=size, budget=budget, columns=columns, lr=lr
                )
                chains += [Chain(msgspec.structs.replace(trial, seed=seed), longest) for seed in range(seeds)]
    trials.conduct("compare", chains, launching, "Networks and learning rules side by side", [])


@app.command
def lesson(
    *,
    longest: Positive = 128,
    seeds: Positive = 1,
    budget: Budget = 15.0,
    trials: TrialOptions = TrialOptions(),
    launching: LaunchOptions = LaunchOptions(),
) -> None:
    """From Elman's network to the LSTM, gate by gate.

    One more gate at each rung, on the tasks recall and adding, as `elman lab compare` does: from span 64 on, doubled
    each time. Prints the equations of each rung and its purpose, then the longest span that each has learnt. Writes
    into --out as `elman lab compare` does. Example: elman lab lesson

    Args:
        longest: the last span
        seeds: number of seeds, from 0
        budget: seconds of processor time per trial
    """
    from elman.study.lab.conduct import LADDER, TASKS, chains

    least = max(span for _, span in TASKS)
    if longest < least:
        raise UserError(f"--longest is {longest}; it must be {least} or more")
    if not trials.as_json:
        for place, rung in enumerate(LADDER):
            print(f"rung {place}, {rung.cell}: {rung.equations}\n  {rung.lesson}\n")
    text = [f"Rung {place}, {rung.cell}: {rung.equations}. {rung.lesson}" for place, rung in enumerate(LADDER)]
    trials.conduct("lesson", chains(seeds, budget, longest), launching, "From Elman's network to the LSTM", text)


@app.command
def heads(
    *,
    task: str = "copy",
    cell: str = "ntm",
    span: Positive | None = None,
    tested: Positive | None = None,
    size: Positive = 100,
    columns: Positive = 16,
    lr: Annotated[float, number(float, Meta(gt=0))] = 3e-3,
    seed: Natural = 0,
    budget: Budget = 120.0,
    out: Annotated[Path, Parameter(metavar="FILE", validator=file_to_write)] = Path("heads.html"),
    as_json: AsJson = False,
) -> None:
    """Where the heads of a neural Turing machine look.

    Train a machine on a task, as a trial of `elman lab compare` does, and draw its heads on one new sequence: which
    rows of the memory each reads and writes at every step, beside what is read, due and answered. Writes a page.
    Example: elman lab heads --task copy --span 10 --tested 20 --out heads.html

    Args:
        task: a task, as `elman lab tasks` shows
        cell: a network with heads, as `elman lab cells` shows
        span: the span of training (default: the task's)
        tested: the span of the sequence that is drawn (default: as in training)
        size: units of the controller
        columns: new sequences per step
        lr: learning rate of Adam
        seed: of weights and sequences
        budget: seconds of processor time, unless the task is learnt before
        out: the page
    """
    from elman.data.classic import classic_task
    from elman.study.lab.heads import look, machine_of, verdict, write_heads
    from elman.study.lab.networks import build_network
    from elman.study.lab.trial import Trial, train_trial

    chosen, console = classic_task(task), progress.log()
    trained = span or chosen.span
    shown = tested or trained
    _require_spans(chosen, span=trained, tested=shown)
    machine_of(build_network(chosen, cell, 1), cell)
    trial = Trial(
        task=task, cell=cell, span=trained, size=size, columns=columns, lr=lr, seed=seed, budget=budget, check_every=100
    )
    result, model = train_trial(trial, lambda step, error: console.print(f"step {step}: error {error:.3g}"))
    looks = look(model, machine_of(model, cell), chosen, shown, seed)
    learnt = "learnt" if result.solved else "not learnt"
    text = (
        f"{cell}, {size} units, {result.parameters:,} weights: {task} at span {trained} {learnt} after"
        f" {result.steps * columns:,} sequences, {result.seconds:.0f} s of processor time."
    )
    page = write_heads(out, looks, title=f"The heads of {cell} on {task}, span {shown}", text=[text])
    facts = {
        "trial": msgspec.to_builtins(trial), "solved": result.solved, "steps": result.steps,
        "seconds": result.seconds, "tested": shown, "error": looks.error, "largest_weight": looks.largest,
        "read_where_written": looks.found, "report": str(page),
    }  # fmt: skip
    show.print_result(as_json, facts, notes=[text, verdict(looks), f"page: {page}"])


def _require_spans(task: "ClassicTask", **spans: int) -> None:
    """Raises UserError for a span, by its option, that the task does not have."""
    for option, span in spans.items():
        if not task.least <= span <= task.most:
            raise UserError(f"--{option} is {span}; the task {task.name} has spans from {task.least} to {task.most:,}")


def _names(option: str, value: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
    if not names:
        raise UserError(f"--{option} is empty; give names with commas between (`elman lab {_LISTED[option]}`)")
    return names
