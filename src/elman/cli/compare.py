"""elman compare."""

import argparse
from pathlib import Path

from elman.cli import options, show
from elman.errors import UserError


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "compare",
        help="is run B better than run A? a paired test on the tokens of a split",
        description="A paired comparison on every token of a split: the difference of NLL with its 95 % interval and a"
        " two-sided p-value from the means of blocks of 100 tokens.",
    )
    parser.add_argument("a", metavar="A", type=Path, help="a run folder")
    parser.add_argument("b", metavar="B", type=Path, help="a run folder with the same vocabulary")
    options.add_split(parser, "another text (default: that of A)")
    options.add_json(parser)
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare and print."""
    import msgspec

    from elman.evaluation.statistics import compare
    from elman.tasks.text.ensemble import require_one_vocabulary, run_log_probs
    from elman.tasks.text.run import TextRun

    device = options.use_machine(args)
    options.at_least(1, "--streams", args.streams)
    runs = [TextRun(folder, device) for folder in (args.a, args.b)]
    require_one_vocabulary(runs)
    corpus = runs[0].corpus(args.data)
    split = next((one for one in runs if one.reads_spelling), runs[0]).split(corpus, args.split)
    a, b = (run_log_probs(loaded, split, args.streams) for loaded in runs)
    found = compare(a, b)
    if found.tokens < 20:
        raise UserError(f"the {args.split} split has {found.tokens} tokens, too few to compare; it needs 20 or more")
    if args.json:
        show.print_json({"a": str(args.a), "b": str(args.b), "split": args.split, **msgspec.to_builtins(found)})
        return 0
    which = "B is better" if found.low > 0 else "A is better" if found.high < 0 else "no clear difference"
    rows = [
        ["NLL(A) - NLL(B), nats a token", f"{found.difference:+.4f}"],
        ["95 % interval", f"{found.low:+.4f} to {found.high:+.4f}"],
        ["p-value", f"{found.p_value:.2g}"],
        ["perplexity(A) / perplexity(B)", f"{found.ratio:.4f}"],
        ["tokens that B predicts better", f"{100 * found.better:.1f} %"],
        ["tokens", f"{found.tokens:,}"],
    ]
    show.print_table(f"A = {args.a}, B = {args.b}, {args.split}: {which}", ["", "value"], rows)
    return 0
