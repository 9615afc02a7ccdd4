"""elman lab."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from elman.cli import options, show
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.laboratory.conduct import Chain
    from elman.laboratory.trial import Trial


_LISTED = {"tasks": "tasks", "cells": "cells", "rules": "cells"}
"""The listing that shows what an option may name."""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "lab",
        help="networks and learning rules side by side on classic tasks",
        description="Classic tasks of recurrent learning: adding, copying, Reber's grammars, counting and others, and"
        " the networks and learning rules that were made for them (docs/lab.md).",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, help, function in (("tasks", "all tasks", tasks), ("cells", "all networks and rules", cells)):
        listing = actions.add_parser(name, help=help)
        options.add_json(listing)
        listing.set_defaults(run=function)
    _add_compare(actions.add_parser("compare", help="cells x rules x tasks: the span at which each still learns"))
    _add_lesson(actions.add_parser("lesson", help="from Elman's network to the LSTM, gate by gate"))


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tasks", default="adding", metavar="A,B", help="as `elman lab tasks` shows (default: adding)")
    parser.add_argument("--cells", default="elman,lstm,gru", metavar="A,B", help="(default: elman,lstm,gru)")
    parser.add_argument("--rules", default="bptt", metavar="A,B", help="as `elman lab cells` shows (default: bptt)")
    parser.add_argument("--span", type=int, metavar="N", help="the first span; then it doubles (default: the task's)")
    parser.add_argument("--longest", type=int, default=1024, metavar="N", help="the last span (default: 1024)")
    parser.add_argument("--size", type=int, default=64, metavar="N", help="units (default: 64)")
    parser.add_argument("--columns", type=int, default=32, metavar="N", help="sequences a step (default: 32)")
    parser.add_argument("--lr", type=float, default=3e-3, metavar="R", help="of Adam (default: 0.003)")
    _add_conduct(parser, budget=60, seeds=3)
    parser.set_defaults(run=compare)


def _add_lesson(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--longest", type=int, default=128, metavar="N", help="the last span (default: 128)")
    _add_conduct(parser, budget=15, seeds=1)
    parser.set_defaults(run=lesson)


def _add_conduct(parser: argparse.ArgumentParser, *, budget: float, seeds: int) -> None:
    parser.add_argument("--seeds", type=int, default=seeds, metavar="N", help=f"seeds 0 to N - 1 (default: {seeds})")
    parser.add_argument(
        "--budget",
        type=float,
        default=budget,
        metavar="S",
        help=f"seconds of processor time a trial may take (default: {budget:g})",
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="trials at once (default: 1)")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="outcomes and page; what is there is not done again"
    )
    options.add_json(parser)


def tasks(args: argparse.Namespace) -> int:
    """List tasks."""
    from elman.data.classic.book import TASKS

    fields = ("name", "sentence", "source", "kind", "span", "solved", "chance")
    rows = [{field: getattr(task, field) for field in fields} for task in TASKS.values()]
    if args.json:
        show.print_json(rows)
        return 0
    header = ["task", "what is to be learnt", "first span", "learnt below", "chance"]
    keys = ("name", "sentence", "span", "solved", "chance")
    show.print_table("classic tasks", header, [[str(row[key]) for key in keys] for row in rows])
    return 0


def cells(args: argparse.Namespace) -> int:
    """List networks and rules."""
    from elman.laboratory.networks import NETWORKS
    from elman.laboratory.rules import RULES

    networks = {name: network.sentence for name, network in NETWORKS.items()}
    if args.json:
        show.print_json({"cells": networks, "rules": RULES})
        return 0
    show.print_table("cells", ["cell", "what it is"], [[*row] for row in networks.items()])
    show.print_table("rules", ["rule", "what it is"], [[*row] for row in RULES.items()])
    return 0


def compare(args: argparse.Namespace) -> int:
    """Compare and print."""
    from elman.data.classic.book import classic_task
    from elman.laboratory.conduct import Chain
    from elman.laboratory.trial import Trial

    for name in ("span", "longest", "size", "columns"):
        options.at_least(1, f"--{name}", getattr(args, name))
    if not 0 < args.lr < math.inf:
        raise UserError(f"--lr is {args.lr:g}; it must be a number above 0")
    chains = []
    for task in map(classic_task, _names(args, "tasks")):
        span = args.span or task.span
        options.at_least(span, "--longest", args.longest)
        for name, asked in (("span", span), ("longest", args.longest)):
            if not task.least <= asked <= task.most:
                raise UserError(
                    f"--{name} is {asked}; the task {task.name} has spans from {task.least} to {task.most:,}"
                )
        for cell in _names(args, "cells"):
            for rule in _names(args, "rules"):
                trial = Trial(
                    task=task.name, cell=cell, rule=rule, span=span, size=args.size, budget=args.budget,
                    columns=args.columns, lr=args.lr,
                )  # fmt: skip
                chains += [Chain(_seeded(trial, seed), args.longest) for seed in range(args.seeds)]
    return _conduct(args, chains, "Networks and learning rules side by side")


def lesson(args: argparse.Namespace) -> int:
    """Climb the ladder."""
    from elman.laboratory.lesson import LADDER, TASKS, chains

    options.at_least(max(span for _, span in TASKS), "--longest", args.longest)
    if not args.json:
        for number, rung in enumerate(LADDER):
            print(f"rung {number}, {rung.cell}: {rung.equations}\n  {rung.lesson}\n")
    text = [f"Rung {number}, {rung.cell}: {rung.equations}. {rung.lesson}" for number, rung in enumerate(LADDER)]
    return _conduct(args, chains(args.seeds, args.budget, args.longest), "From Elman's network to the LSTM", text)


def _conduct(args: argparse.Namespace, chains: "list[Chain]", title: str, text: list[str] | None = None) -> int:
    from elman.laboratory import summary
    from elman.laboratory.conduct import conduct
    from elman.report.laboratory import verdict, write_laboratory

    for name in ("seeds", "jobs"):
        options.at_least(1, f"--{name}", getattr(args, name))
    options.at_least(0.1, "--budget", args.budget)
    _check(chains)
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {args.out} cannot be a folder: {error.strerror}; give another place") from error
    results = conduct(chains, args.out, args.jobs, show.log().print)
    page = write_laboratory(args.out / "report.html", results, title=title, text=text or [])
    if args.json:
        show.print_json({**summary.to_builtins(results), "report": str(page)})
        return 0
    rows = summary.summarise(results)
    show.print_table(title, *summary.table(rows))
    print(verdict(rows))
    print(f"report: {page}")
    return 0


def _check(chains: "list[Chain]") -> None:
    """Raises UserError for what does not exist or fit together, before anything is run."""
    from elman.data.classic.book import classic_task
    from elman.laboratory.networks import build_network
    from elman.laboratory.readout import learner_of

    for trial in {_seeded(chain.first, 0) for chain in chains}:
        model = build_network(classic_task(trial.task), trial.cell, trial.size)
        learner_of(model, trial.rule).check(model, trial.columns)


def _names(args: argparse.Namespace, option: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in getattr(args, option).split(",") if name.strip()))
    if not names:
        listing = f"elman lab {_LISTED[option]}"
        raise UserError(f"--{option} names none; give some, separated by commas (`{listing}` shows them)")
    return names


def _seeded(trial: "Trial", seed: int) -> "Trial":
    import msgspec

    return msgspec.structs.replace(trial, seed=seed)
