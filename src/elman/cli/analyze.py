"""elman analyze."""

import argparse

from elman.cli import analyze_dynamics, analyze_stability


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments: a question each."""
    parser = commands.add_parser(
        "analyze", help="look into a run: stability, dynamics", description="Questions to a trained run."
    )
    subcommands = parser.add_subparsers(title="questions", metavar="QUESTION", required=True)
    for module in (analyze_stability, analyze_dynamics):
        module.add(subcommands)
