"""elman grammar: sentences whose structure is known, and what a model has learnt of it."""

import argparse

from elman.cli import grammar_generate, grammar_test


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "grammar",
        help="sentences of a grammar with number agreement: make them, test a model on them",
        description="Artificial languages after Elman 1991: a probabilistic grammar with number agreement and embedded"
        " clauses makes sentences whose structure and true probabilities are known.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    grammar_generate.add(actions)
    grammar_test.add(actions)
