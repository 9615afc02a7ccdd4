"""elman analyze neighbours."""

import argparse

from elman.cli import options, show


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "neighbours",
        help="the words nearest to a string, by the cosine of their vectors",
        description="The words of the vocabulary whose input vectors are nearest to that of a string, by their cosine."
        " Where the model reads spelling any string has a vector; else it must be in the vocabulary. Prints a table and"
        " writes no page.",
    )
    options.add_run(parser)
    parser.add_argument("words", metavar="WORD", nargs="+", help="strings, such as looooook")
    parser.add_argument("-k", type=int, default=5, metavar="K", help="how many neighbours of each (default: 5)")
    parser.add_argument(
        "--before-highway", action="store_true", help="compare what the filters give, below the highway layers"
    )
    options.add_json(parser)
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Find and print."""
    from elman.analysis.embedding import neighbourhoods
    from elman.data.text.tokeniser import fold
    from elman.tasks.text.run import TextRun

    device = options.use_machine(args)
    options.at_least(1, "-k", args.k)
    loaded = TextRun(args.folder, device)
    words = fold(args.words) if loaded.options.folds_tokens else args.words
    found = neighbourhoods(loaded.model, loaded.vocabulary, words, args.k, highway=not args.before_highway)
    if args.json:
        rows = [
            {"word": word, "known": known, "neighbours": [near._asdict() for near in nearest]}
            for word, known, nearest in found
        ]
        show.print_json({"run": str(args.folder), "before_highway": args.before_highway, "words": rows})
        return 0
    where = "below the highway" if args.before_highway else "by their vectors"
    cells = [
        [f"{word}{'' if known else ' (unknown)'}", *(f"{near.word} {near.cosine:.2f}" for near in nearest)]
        for word, known, nearest in found
    ]
    show.print_table(f"{args.folder}: nearest words, {where}", ["", *map(str, range(1, len(cells[0])))], cells)
    return 0
