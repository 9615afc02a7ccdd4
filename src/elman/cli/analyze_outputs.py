"""elman analyze outputs."""

import argparse
from pathlib import Path

from elman.cli import options, show


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "outputs",
        help="what output functions make of a line of scores; needs no run",
        description="Images of output functions on the simplex of three symbols and in log space, the rank that they"
        " reach from one line of scores, and how near they come to softmax. Needs no run.",
    )
    parser.add_argument(
        "--activation", nargs="+", metavar="NAME", help="output functions, such as softmax sigsoftmax (default: all)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("outputs.html"), metavar="FILE", help="the page (default: outputs.html)"
    )
    options.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the page, print the table of ranks."""
    from elman.analysis import output_functions
    from elman.analysis.output_functions import require_known
    from elman.network.output.activation import ACTIVATIONS

    names = require_known(args.activation or ACTIVATIONS)
    ranks, limits = output_functions.rank_table(names), output_functions.limit_table(names)
    page = output_functions.write_outputs_page(args.out, names, ranks, limits)
    if args.json:
        show.print_json(
            {
                "ranks": [
                    {
                        "activation": name,
                        "b": shift,
                        "rank": dict(zip(map(str, output_functions.SIZES), found, strict=True)),
                    }
                    for name, shift, found in ranks
                ],
                "distance_from_softmax": {
                    name: [
                        {"b": b, "distance": distance}
                        for b, distance in zip(output_functions.LIMITS, found, strict=True)
                    ]
                    for name, found in limits
                },
                "report": str(page),
            }
        )
        return 0
    rows = [[f"{name}, b = {shift:g}", *map(str, found)] for name, shift, found in ranks]
    header = ["", *(f"M = {size}" for size in output_functions.SIZES)]
    show.print_table("rank of the log-probabilities of one line z = h w + b 1", header, rows)
    print(output_functions.verdict(ranks))
    print(f"report: {page}")
    return 0
