"""elman lab lesson."""

import argparse

from elman.cli import lab_conduct, options


def add(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = actions.add_parser(
        "lesson",
        help="from Elman's network to the LSTM, gate by gate",
        description="Climb from Elman's network to the LSTM, one gate a rung, on the tasks recall and adding, as"
        " `elman lab compare` does: from span 32 on, twice as long each time. Printed: the equations of each rung and"
        f" what it is for, then the longest span that each has learnt. {lab_conduct.WRITTEN}",
        epilog="Example: elman lab lesson --out runs/lesson",
    )
    parser.add_argument("--longest", type=int, default=128, metavar="N", help="the last span (default: 128)")
    lab_conduct.add(parser, budget=15, seeds=1)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Climb the ladder."""
    from elman.laboratory.conduct import LADDER, TASKS, chains

    options.at_least(max(span for _, span in TASKS), "--longest", args.longest)
    if not args.json:
        for number, rung in enumerate(LADDER):
            print(f"rung {number}, {rung.cell}: {rung.equations}\n  {rung.lesson}\n")
    text = [f"Rung {number}, {rung.cell}: {rung.equations}. {rung.lesson}" for number, rung in enumerate(LADDER)]
    found = chains(args.seeds, args.budget, args.longest)
    return lab_conduct.conduct(args, found, "From Elman's network to the LSTM", text)
