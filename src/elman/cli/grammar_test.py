"""elman grammar test."""

import argparse
from pathlib import Path

from elman.cli import options, show


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "test",
        help="agreement of a model by embedding and attractors, its distance from the grammar, its trajectories",
        description="Fresh sentences of a grammar: how often the right form of a verb is more probable than the wrong"
        " one, the right number's share of the probability of verbs, cross-entropy beside the grammar's own, and the"
        " hidden state along sentences. Writes a page with tables and plots.",
    )
    options.add_run(parser)
    parser.add_argument("--grammar", metavar="RULES", help="a file of rules or a name (default: that of the recipe)")
    parser.add_argument("--sentences", type=int, default=5_000, metavar="N", help="fresh sentences (default: 5000)")
    parser.add_argument("--complex", type=float, metavar="SHARE", help="share with an embedded clause (default: own)")
    parser.add_argument("--max-depth", type=int, metavar="N", help="clauses within each other at most (default: own)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the draw (default: 0)")
    parser.add_argument(
        "--walk", action="append", default=[], metavar="SENTENCE", help="draw its trajectory; may be given again"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="the page (default: RUN/grammar.html)")
    options.add_json(parser)
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, write the page, print."""
    import msgspec

    from elman.analysis.grammar import HEADER, cells, examine, options_of, write_findings
    from elman.drawing.page import require_file_name
    from elman.errors import UserError
    from elman.tasks.text.run import TextRun

    device = options.use_machine(args)
    options.at_least(1, "--sentences", args.sentences)
    options.at_least(0, "--max-depth", args.max_depth)
    if args.complex is not None and not 0 <= args.complex <= 1:
        raise UserError(f"--complex is {args.complex:g}; it is a share from 0 to 1")
    page = require_file_name(args.folder / "grammar.html" if args.out is None else args.out)
    loaded = TextRun(args.folder, device)
    wanted = options_of(loaded, args.grammar)
    changes = {key: getattr(args, key) for key in ("complex", "max_depth") if getattr(args, key) is not None}
    with show.counting(f"testing {args.folder}") as advance:
        found = examine(
            loaded,
            msgspec.structs.replace(wanted, **changes),
            count=args.sentences,
            seed=args.seed,
            walks=args.walk,
            advance=advance,
        )
    write_findings(page, found)
    if args.json:
        show.print_json({"page": str(page), **found.summary()})
        return 0
    for title, lines in found.tables.items():
        show.print_table(f"Agreement {title}", HEADER, [cells(one) for one in lines])
    near = found.closeness
    print(f"all: {100 * found.whole.accuracy.share:.2f} % of {found.whole.accuracy.count:,} verbs")
    print(
        f"nats a word: model {near.model:.4f}, grammar {near.grammar:.4f}; KL divergence {near.divergence:.4f};"
        f" {found.seen:,} of {found.sentences:,} sentences were in the training text"
    )
    print(f"page: {page}")
    return 0
