"""The command line: each command parses, calls, prints. Logs go to stderr, results to stdout."""

import argparse
import os
import sys
from collections.abc import Sequence

from elman import __version__
from elman.cli import (
    analyze,
    compare,
    data,
    demo,
    embed,
    evaluate,
    generate,
    grammar,
    info,
    lab,
    metrics,
    recipes,
    report,
    reproduce,
    rescore,
    score,
    train,
)
from elman.errors import UserError

COMMANDS = (
    demo,
    train,
    evaluate,
    generate,
    score,
    rescore,
    embed,
    compare,
    metrics,
    analyze,
    lab,
    grammar,
    reproduce,
    report,
    info,
    data,
    recipes,
)


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    top = argparse.ArgumentParser(
        prog="elman",
        description="Recurrent models of words, characters, pairs of texts and music: train, evaluate, sample, score.",
        epilog="Begin with `elman demo`, or with a text of your own:"
        " elman train recipes/shakespeare/demo.toml --data TEXT --out runs/first. `elman COMMAND --help` says more.",
    )
    top.add_argument("--version", action="version", version=f"elman {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, 2 for the user's mistakes, 130 when stopped by a signal."""
    args = parser().parse_args(arguments)
    try:
        return args.run(args) or 0
    except UserError as error:
        print(f"elman: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("elman: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
