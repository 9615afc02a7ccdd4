"""elman report."""

import argparse
from pathlib import Path

from elman.cli import options, show


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "report",
        help="one self-contained HTML page about one run or several",
        description="Write one self-contained HTML page: learning curves, results beside published numbers, samples,"
        " surprisal, configuration. Several runs are laid over each other.",
    )
    parser.add_argument("folders", metavar="RUN", nargs="+", type=Path, help="run folders")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="the page (default: RUN/report.html; report.html here for several runs)",
    )
    options.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the page."""
    from elman.report.page import write_report

    page = write_report(args.folders, args.out)
    if args.json:
        show.print_json({"report": str(page)})
    else:
        print(f"report: {page}")
    return 0
