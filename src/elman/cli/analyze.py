"""elman analyze: what a model does, beyond its perplexity."""

import argparse

from elman.cli import (
    analyze_attention,
    analyze_dynamics,
    analyze_frequency,
    analyze_mixture,
    analyze_neighbours,
    analyze_outputs,
    analyze_rank,
    analyze_stability,
)

ANALYSES = (
    analyze_rank,
    analyze_outputs,
    analyze_mixture,
    analyze_stability,
    analyze_dynamics,
    analyze_frequency,
    analyze_neighbours,
    analyze_attention,
)
"""The subcommands; each is a module with `add`, like a command."""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "analyze",
        help="look into a model: rank of its outputs, output functions, mixtures, stability, dynamics, rare words,"
        " neighbours, attention",
        description="Look into a model. Each analysis prints a table; most write a self-contained HTML page.",
    )
    analyses = parser.add_subparsers(title="analyses", metavar="ANALYSIS", required=True)
    for module in ANALYSES:
        module.add(analyses)
