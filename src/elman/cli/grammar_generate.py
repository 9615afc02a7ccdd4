"""elman grammar generate."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from elman.cli import options, show
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.data.grammar.sample import Sentence


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "generate",
        help="write sentences of a grammar: train, valid and test, with their agreement dependencies",
        description="Write train.txt, valid.txt and test.txt, one sentence a line, and beside each SPLIT.agreement.tsv"
        " with a row a verb: its noun, both forms, depth, levels of embedding between them, attractors. Without --out"
        " the sentences of the training split are printed.",
    )
    parser.add_argument(
        "rules", metavar="RULES", help="a file of rules, or one that comes with elman: elman-1991, prepositions"
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="the folder; it must not hold a text yet")
    parser.add_argument("--sentences", type=int, default=10_000, metavar="N", help="of training (default: 10000)")
    parser.add_argument("--valid", type=int, default=1_000, metavar="N", help="of validation (default: 1000)")
    parser.add_argument("--test", type=int, default=1_000, metavar="N", help="of the test (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the draw (default: 0)")
    parser.add_argument("--max-depth", type=int, metavar="N", help="clauses within each other at most")
    parser.add_argument("--max-length", type=int, metavar="N", help="words of a sentence at most")
    parser.add_argument(
        "--complex", type=float, metavar="SHARE", help="share of sentences with an embedded clause, from 0 to 1"
    )
    options.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write or print."""
    from itertools import islice

    from elman.config.text import GrammarOptions
    from elman.data.grammar.reading import read_grammar
    from elman.data.grammar.sample import sentences, wish_of, write_text

    for name in ("sentences", "valid", "test", "max_length"):
        options.at_least(1, f"--{name.replace('_', '-')}", getattr(args, name))
    options.at_least(0, "--max-depth", args.max_depth)
    options.at_least(0, "--seed", args.seed)
    if args.complex is not None and not 0 <= args.complex <= 1:
        raise UserError(f"--complex is {args.complex:g}; it is a share from 0 to 1")
    keys = ("rules", "sentences", "valid", "test", "seed", "max_depth", "max_length", "complex")
    wanted = GrammarOptions(**{key: getattr(args, key) for key in keys})
    grammar = read_grammar(args.rules)
    if args.out is None:
        for sentence in islice(sentences(grammar, wish_of(wanted), f"{args.seed} train"), args.sentences):
            record = {"words": sentence.words, "dependencies": [one._asdict() for one in sentence.dependencies]}
            show.print_json(record) if args.json else print(" ".join(sentence.words))
        return 0
    if args.out.is_file() or (args.out / "train.txt").exists():
        raise UserError(f"{args.out} is a file or holds a text already; choose another --out")
    rows = [_row(split, found) for split, found in write_text(grammar, wanted, args.out).items()]
    if args.json:
        show.print_json({"folder": str(args.out), "splits": [dict(zip(_COLUMNS, row, strict=True)) for row in rows]})
        return 0
    shown = [[cell if isinstance(cell, str) else f"{cell:,}" for cell in row] for row in rows]
    show.print_table(f"{args.rules} in {args.out}", [column.replace("_", " ") for column in _COLUMNS], shown)
    return 0


_COLUMNS = ("split", "sentences", "complex", "tokens", "verbs", "across_2_levels", "with_attractors")


def _row(split: str, found: "Sequence[Sentence]") -> tuple[str | int, ...]:
    """What there is of a split."""
    links = [one for sentence in found for one in sentence.dependencies]
    return (
        split,
        len(found),
        sum(sentence.depth > 0 for sentence in found),
        sum(len(sentence.words) + 1 for sentence in found),
        len(links),
        sum(one.levels >= 2 for one in links),
        sum(one.attractors > 0 for one in links),
    )
