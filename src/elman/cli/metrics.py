"""elman metrics."""

import argparse
from typing import TYPE_CHECKING

from elman.cli import options, show
from elman.cli.measures import print_differences, print_measures
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.evaluation.transduction import Rules


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "metrics",
        help="ROUGE, BLEU and chrF, or bracket F1 of a system's output; is another system's better?",
        description="Measures of output against references, line by line, with 95 % bootstrap intervals; --against"
        " tests a second system on the same lines (paired bootstrap, approximate randomisation).",
    )
    parser.add_argument("references", metavar="REFERENCES", help="the right output; for trees a treebank in brackets")
    parser.add_argument("hypotheses", metavar="HYPOTHESES", help="a system's output, a line each; - reads stdin")
    parser.add_argument("--against", metavar="OTHER", help="another system's output for the same references")
    parser.add_argument(
        "--kind",
        choices=("headlines", "translation", "trees"),
        default="translation",
        help="headlines: ROUGE; translation: BLEU, chrF; trees: brackets (default: translation)",
    )
    parser.add_argument(
        "--rouge-words",
        choices=("english", "spaces"),
        default="english",
        help="words of ROUGE: a-z and 0-9, or what stands between spaces, as Japanese needs (default: english)",
    )
    parser.add_argument(
        "--bleu-tokens",
        choices=("none", "13a", "char", "zh", "intl"),
        default="none",
        help="sacrebleu's tokenisation; none: the lines are tokenised (default: none)",
    )
    parser.add_argument("--samples", type=int, default=1000, metavar="N", help="resamples (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the resamples (default: 0)")
    options.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, compare and print."""
    import msgspec

    from elman.evaluation.statistics import differences, estimates
    from elman.evaluation.transduction import Rules, measures

    options.at_least(10, "--samples", args.samples)
    options.at_least(0, "--seed", args.seed)
    rules = Rules(args.kind, args.rouge_words, args.bleu_tokens)
    references, sentences = _references(args.references, rules)
    systems = {
        name: measures(_output(name, references, args, rules), references, rules, sentences)
        for name in (args.hypotheses, *([] if args.against is None else [args.against]))
    }
    shown = {
        name: [msgspec.to_builtins(one) for one in estimates(found, args.samples, args.seed)]
        for name, found in systems.items()
    }
    ours, theirs = systems[args.hypotheses], systems.get(args.against)
    compared = [] if theirs is None else differences(ours, theirs, args.samples, args.seed)
    if args.json:
        told = {"references": args.references, "lines": len(references), "systems": shown}
        show.print_json({**told, "differences": [msgspec.to_builtins(one) for one in compared]})
        return 0
    print_measures(f"{args.references}, {len(references):,} lines", shown)
    if compared:
        print_differences(f"{args.against} - {args.hypotheses}", compared)
    return 0


def _references(name: str, rules: "Rules") -> tuple[list[str], list[str]]:
    """The references a line each, and for trees their sentences."""
    from elman.data.pairs.trees import read_trees, to_pair

    lines = options.read_lines(name)
    if rules.kind != "trees":
        return [line.strip() for line in lines], []
    pairs = [to_pair(tree, True, False) for tree in read_trees("".join(lines), name)]
    return [linear for _, linear in pairs], [words for words, _ in pairs]


def _output(name: str, references: list[str], args: argparse.Namespace, rules: "Rules") -> list[str]:
    from elman.data.pairs.trees import linear_line

    lines = [line.strip() for line in options.read_lines(name)]
    if len(lines) != len(references):
        raise UserError(
            f"{name} has {len(lines):,} lines and {args.references} has {len(references):,}"
            f" {'trees' if rules.kind == 'trees' else 'lines'}; line n must be the output for reference n"
        )
    if rules.kind != "trees":
        return lines
    return [linear_line(line, f"{name}:{number}") for number, line in enumerate(lines, start=1)]
