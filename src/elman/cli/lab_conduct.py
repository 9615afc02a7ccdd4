"""What the actions of elman lab that run trials share."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from elman.cli import options, show
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.laboratory.conduct import Chain
    from elman.laboratory.trial import Trial

WRITTEN = (
    "Written into --out: each outcome as JSON under trials/, and report.html with learning curves and with the errors"
    " on their way back in time. What was stopped goes on when the command is given again."
)
"""For the descriptions."""


def add(parser: argparse.ArgumentParser, *, budget: float, seeds: int) -> None:
    """--seeds, --budget, --jobs, --out and --json."""
    parser.add_argument("--seeds", type=int, default=seeds, metavar="N", help=f"seeds 0 to N - 1 (default: {seeds})")
    parser.add_argument(
        "--budget",
        type=float,
        default=budget,
        metavar="S",
        help=f"seconds of processor time a trial may take (default: {budget:g})",
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="trials at once, each on one thread (default: 1)"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="outcomes and page; what is there is not done again"
    )
    options.add_json(parser)


def conduct(args: argparse.Namespace, chains: "list[Chain]", title: str, text: list[str] | None = None) -> int:
    """Run what is not there yet, print what came of all, and write the page."""
    from elman.laboratory import summary
    from elman.laboratory.conduct import conduct
    from elman.laboratory.page import verdict, write_laboratory

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


def seeded(trial: "Trial", seed: int) -> "Trial":
    """The same trial with another seed."""
    import msgspec

    return msgspec.structs.replace(trial, seed=seed)


def _check(chains: "list[Chain]") -> None:
    """Raises UserError for what does not exist or fit together, before anything is run."""
    from elman.data.classic import classic_task
    from elman.laboratory.networks import build_network, learner_of

    for trial in {seeded(chain.first, 0) for chain in chains}:
        model = build_network(classic_task(trial.task), trial.cell, trial.size)
        learner_of(model, trial.rule).check(model, trial.columns)
