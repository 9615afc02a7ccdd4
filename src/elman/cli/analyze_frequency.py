"""elman analyze frequency."""

import argparse

from elman.cli import options, show
from elman.errors import UserError


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "frequency",
        help="perplexity of rare and frequent words, and of what follows them",
        description="Perplexity of a split by how often its words were seen in training: of the words themselves, and"
        " of the tokens that follow them, where the model has read them. <unk> has a line of its own. Prints a table,"
        " no page.",
    )
    options.add_run(parser)
    options.add_split(parser, "another text, read with the run's vocabulary (default: its own)")
    parser.add_argument(
        "--edges",
        type=int,
        nargs="+",
        metavar="N",
        help="where bins of frequency begin, beside 0 (default: 1 5 25 100 1000)",
    )
    parser.add_argument(
        "--unknown-as-unk", action="store_true", help="read unknown words as <unk>, also by a model that reads spelling"
    )
    options.add_json(parser)
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Evaluate and print."""
    from elman.analysis.by_word import EDGES, by_frequency
    from elman.tasks.text.ensemble import run_log_probs
    from elman.tasks.text.run import TextRun

    device = options.use_machine(args)
    options.at_least(1, "--streams", args.streams)
    edges = args.edges or EDGES
    if list(edges) != sorted(set(edges)) or edges[0] < 1:
        raise UserError(f"--edges {' '.join(map(str, edges))}: they must rise, and the first be 1 or more")
    loaded = TextRun(args.folder, device)
    corpus = loaded.corpus(args.data)
    split = corpus.split(args.split) if args.unknown_as_unk else loaded.split(corpus, args.split)
    log_probs = run_log_probs(loaded, split, args.streams)
    train = loaded.corpus().split("train").tokens
    bins = by_frequency(log_probs, split.tokens, train, len(loaded.vocabulary), loaded.vocabulary.unk, edges)
    if args.json:
        rows = [
            {
                "seen": one.name,
                "tokens": one.tokens,
                "perplexity": one.perplexity,
                "following": one.following,
                "following_perplexity": one.following_perplexity,
            }
            for one in bins
        ]
        show.print_json({"run": str(args.folder), "data": corpus.source, "split": args.split, "bins": rows})
        return 0
    header = ["seen in training", "tokens", "perplexity", "tokens after them", "perplexity"]
    cells = [
        [one.name, f"{one.tokens:,}", _shown(one.perplexity), f"{one.following:,}", _shown(one.following_perplexity)]
        for one in bins
    ]
    show.print_table(f"{args.folder}, {args.split}: by training frequency", header, cells)
    return 0


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"
