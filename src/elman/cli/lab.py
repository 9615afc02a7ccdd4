"""elman lab: networks and learning rules side by side."""

import argparse

from elman.cli import lab_compare, lab_lesson, options, show


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "lab",
        help="networks and learning rules side by side on classic tasks",
        description="Classic tasks of recurrent learning: adding, copying, Reber's grammars, counting and others, and"
        " the networks and learning rules that were made for them (docs/lab.md).",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_tasks(actions)
    _add_cells(actions)
    lab_compare.add(actions)
    lab_lesson.add(actions)


def _add_tasks(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "tasks",
        help="all tasks",
        description="List the tasks for `elman lab compare --tasks`: what is to be learnt, the span that a comparison"
        " begins with, the error below which it counts as learnt, and that of guessing. --json adds the source and"
        " whether symbols or values are foretold. Nothing is run or written.",
        epilog="Example: elman lab tasks",
    )
    options.add_json(parser)
    parser.set_defaults(run=tasks)


def _add_cells(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = actions.add_parser(
        "cells",
        help="all networks and rules",
        description="List the networks for `elman lab compare --cells` and the learning rules for --rules, each with"
        " what it is and where it comes from. Nothing is run or written.",
        epilog="Example: elman lab cells",
    )
    options.add_json(parser)
    parser.set_defaults(run=cells)


def tasks(args: argparse.Namespace) -> int:
    """List tasks."""
    from elman.data.classic import TASKS

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
    from elman.laboratory.networks import NETWORKS, RULES

    networks = {name: network.sentence for name, network in NETWORKS.items()}
    if args.json:
        show.print_json({"cells": networks, "rules": RULES})
        return 0
    show.print_table("cells", ["cell", "what it is"], [[*row] for row in networks.items()])
    show.print_table("rules", ["rule", "what it is"], [[*row] for row in RULES.items()])
    return 0
