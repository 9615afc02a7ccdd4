"""elman lab compare."""

import argparse
import math

from elman.cli import lab_conduct, options
from elman.errors import UserError

_LISTED = {"tasks": "tasks", "cells": "cells", "rules": "cells"}
"""The listing that shows what an option may name."""


def add(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = actions.add_parser(
        "compare",
        help="cells x rules x tasks: the span at which each still learns",
        description="Train every cell by every rule on every task. Each begins at the task's first span and, when it"
        " has learnt that, begins anew at twice the span, until it fails within --budget or --longest is reached."
        f" Printed: the longest span learnt, by seed, with steps, error, weights and seconds. {lab_conduct.WRITTEN}",
        epilog="Example: elman lab compare --tasks adding,copying --cells elman,lstm,gru --out runs/lab",
    )
    parser.add_argument("--tasks", default="adding", metavar="A,B", help="as `elman lab tasks` shows (default: adding)")
    parser.add_argument(
        "--cells",
        default="elman,lstm,gru",
        metavar="A,B",
        help="networks, as `elman lab cells` shows (default: elman,lstm,gru)",
    )
    parser.add_argument(
        "--rules", default="bptt", metavar="A,B", help="of learning, as `elman lab cells` shows (default: bptt)"
    )
    parser.add_argument("--span", type=int, metavar="N", help="the first span; then it doubles (default: the task's)")
    parser.add_argument("--longest", type=int, default=1024, metavar="N", help="the last span (default: 1024)")
    parser.add_argument("--size", type=int, default=64, metavar="N", help="units of a layer (default: 64)")
    parser.add_argument("--columns", type=int, default=32, metavar="N", help="new sequences a step (default: 32)")
    parser.add_argument("--lr", type=float, default=3e-3, metavar="R", help="learning rate of Adam (default: 0.003)")
    lab_conduct.add(parser, budget=60, seeds=3)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare and print."""
    from elman.data.classic import classic_task
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
                chains += [Chain(lab_conduct.seeded(trial, seed), args.longest) for seed in range(args.seeds)]
    return lab_conduct.conduct(args, chains, "Networks and learning rules side by side")


def _names(args: argparse.Namespace, option: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in getattr(args, option).split(",") if name.strip()))
    if not names:
        listing = f"elman lab {_LISTED[option]}"
        raise UserError(f"--{option} names none; give some, separated by commas (`{listing}` shows them)")
    return names
