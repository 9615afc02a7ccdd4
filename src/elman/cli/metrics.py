"""elman metrics."""

import argparse
from typing import TYPE_CHECKING, Any

from elman.cli import options, show
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

    from elman.evaluation.transduction import Rules, differences, figures, measures

    options.at_least(10, "--samples", args.samples)
    options.at_least(0, "--seed", args.seed)
    rules = Rules(args.kind, args.rouge_words, args.bleu_tokens)
    references, sentences = _references(args.references, rules)
    ours = measures(_output(args.hypotheses, references, args, rules), references, rules, sentences)
    found = figures(ours, args.samples, args.seed)
    told: dict[str, Any] = {
        "references": args.references,
        "lines": len(references),
        args.hypotheses: [msgspec.to_builtins(figure) for figure in found],
    }
    compared = []
    if args.against is not None:
        theirs = measures(_output(args.against, references, args, rules), references, rules, sentences)
        compared = differences(ours, theirs, args.samples, args.seed)
        told[args.against] = [msgspec.to_builtins(one) for one in figures(theirs, args.samples, args.seed)]
        told["differences"] = [msgspec.to_builtins(one) for one in compared]
    if args.json:
        show.print_json(told)
        return 0
    rows = [[figure.name, f"{figure.value:.2f}", f"{figure.low:.2f} to {figure.high:.2f}"] for figure in found]
    show.print_table(f"{args.hypotheses}, {len(references):,} lines", ["measure", "value", "95 % interval"], rows)
    for signature in dict.fromkeys(figure.signature for figure in found):
        print(signature)
    if compared:
        rows = [
            [
                one.name,
                f"{one.a:.2f}",
                f"{one.b:.2f}",
                f"{one.difference:+.2f}",
                f"{one.low:+.2f} to {one.high:+.2f}",
                f"{one.p_value:.3g}",
            ]
            for one in compared
        ]
        header = ["measure", "A", "B", "B - A", "95 % interval", "p-value"]
        show.print_table(f"A = {args.hypotheses}, B = {args.against}", header, rows)
    return 0


def _references(name: str, rules: "Rules") -> tuple[list[str], list[str]]:
    """The references a line each, and for trees their sentences."""
    from elman.data.trees import read_trees, to_pair

    lines = options.read_lines(name)
    if rules.kind != "trees":
        return [line.strip() for line in lines], []
    pairs = [to_pair(tree, True, False) for tree in read_trees("".join(lines), name)]
    return [linear for _, linear in pairs], [words for words, _ in pairs]


def _output(name: str, references: list[str], args: argparse.Namespace, rules: "Rules") -> list[str]:
    from elman.data.trees import linear_line

    lines = [line.strip() for line in options.read_lines(name)]
    if len(lines) != len(references):
        raise UserError(
            f"{name} has {len(lines):,} lines and {args.references} has {len(references):,}"
            f" {'trees' if rules.kind == 'trees' else 'lines'}; line n must be the output for reference n"
        )
    if rules.kind != "trees":
        return lines
    return [linear_line(line, f"{name}:{number}") for number, line in enumerate(lines, start=1)]
