"""elman reproduce."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from elman.cli import options, show
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.reproduce.conduct import Plan, Reproduction


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "reproduce",
        help="train, measure and judge what the papers claim",
        description="Published claims as experiments: trains what one needs, measures it, and judges the claim by the"
        " figures. Runs are kept in OUT by what they are, so what is trained is not trained again, and whatever"
        " interrupts, the same command goes on. The last line is NAME: holds, NAME: does not hold, or"
        " NAME: undecided (needs N seeds).",
    )
    parser.add_argument("name", metavar="NAME", help="an experiment, `all`, or `list` to see them")
    parser.add_argument(
        "--scale", default="small", metavar="S", help="small (minutes per run on two cores) or paper (default: small)"
    )
    parser.add_argument("--data", metavar="TEXT", help="a corpus for every run (default: Shakespeare at small scale)")
    parser.add_argument("--out", type=Path, default=Path("runs/reproduce"), help="default: runs/reproduce")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds 1 to N (default: the experiment's, 3)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="trainings at once (default: 1)")
    parser.add_argument("--resume", action="store_true", help="go on in OUT, which must be there")
    options.add_json(parser)
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List, or conduct and print."""
    if args.name == "list":
        return _list(args.json)
    from elman.reproduce.claim import scale_of
    from elman.reproduce.claims import choose
    from elman.reproduce.conduct import conduct, plan, record, total_minutes
    from elman.reproduce.runs import Store
    from elman.reproduce.training import Machine, Stopped

    claims, scale = choose(args.name), scale_of(args.scale)
    options.at_least(1, "--seeds", args.seeds)
    options.at_least(1, "--jobs", args.jobs)
    if args.resume and not args.out.is_dir():
        raise UserError(f"--resume: there is no folder {args.out}; leave --resume out to begin")
    options.use_machine(args)
    console, store = show.log(), Store(args.out, args.data)
    machine = Machine(args.jobs, args.device, args.threads)
    if len(claims) > 1:
        for claim in (claim for claim in claims if claim.data is not None):
            console.print(f"{claim.name}: left out of `all`; it needs --data of its own: {claim.data}")
        claims = [claim for claim in claims if claim.has(scale) and claim.data is None]
    outcomes = []
    try:
        plans = []
        for claim in claims:
            plans.append(plan(claim, store, scale, args.seeds, machine))
            console.print(_planned(plans[-1]))
        console.print(f"planned: {_minutes(total_minutes(plans, machine))} in all, {args.jobs} at once")
        for planned in plans:
            outcomes.append(conduct(planned, store, machine, console.print))
            if not args.json:
                _print(outcomes[-1])
    except Stopped:
        console.print("stopped and saved; the same command continues")
        return 130
    if args.json:
        records = [record(outcome) for outcome in outcomes]
        show.print_json(records[0] if len(records) == 1 else records)
    return 0


def _planned(planned: "Plan") -> str:
    every = sum(map(len, planned.runs.values()))
    return (
        f"{planned.claim.name}, {planned.scale} scale, seeds {planned.seeds[0]} to {planned.seeds[-1]}:"
        f" {every} runs, {len(planned.waiting)} to train"
    )


def _minutes(minutes: float) -> str:
    if minutes < 1.5:
        return "about a minute or less"
    if minutes < 120:
        return f"about {minutes:.0f} minutes"
    return f"about {minutes / 60:,.0f} hours" if minutes < 72 * 60 else f"about {minutes / 1440:,.0f} days"


def _print(outcome: "Reproduction") -> None:
    from elman.reproduce.page import table

    claim = outcome.plan.claim
    header, rows = table(claim, outcome.measurements)
    show.print_table(f"{claim.sentence} ({claim.source})", header, rows)
    for verdict in outcome.verdicts:
        print(f"{verdict.statement}: {verdict.line}")
        print(f"  {verdict.figures}")
    print(f"report: {outcome.page}")
    print(outcome.line)


def _list(as_json: bool) -> int:
    from elman.reproduce.claim import SCALES
    from elman.reproduce.claims import CLAIMS
    from elman.reproduce.conduct import nominal_minutes

    claims = CLAIMS.values()
    scales = {
        claim.name: {scale: nominal_minutes(claim, scale, claim.seeds) for scale in SCALES if claim.has(scale)}
        for claim in claims
    }
    if as_json:
        show.print_json(
            [
                {
                    "name": claim.name,
                    "claim": claim.sentence,
                    "source": claim.source,
                    "minutes": scales[claim.name],
                    "arms": [arm.label for arm in claim.arms],
                    "seeds": claim.seeds,
                }
                for claim in claims
            ]
        )
        return 0
    for claim in claims:
        times = ", ".join(f"{scale} {_minutes(minutes)}" for scale, minutes in scales[claim.name].items())
        runs = f"{len(claim.arms)} arms x {claim.seeds} seeds = {len(claim.arms) * claim.seeds} runs"
        print(f"{claim.name}\n  {claim.sentence}\n  {claim.source}\n  {runs}; on one thread, untrained: {times}")
        if claim.data is not None:
            print(f"  needs --data: {claim.data}")
    return 0
