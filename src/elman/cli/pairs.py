"""elman evaluate RUN --pairs: minimal pairs."""

import argparse
from typing import TYPE_CHECKING, Any

from elman.cli import options, show
from elman.errors import UserError

if TYPE_CHECKING:
    import torch

    from elman.data.minimal_pairs import Pair
    from elman.laboratory.summary import Row
    from elman.tasks.text.run import TextRun

_HEADER = ["phenomenon", "pairs", "only unknown differ", "accuracy, %", "95 % interval", "no unknown", "accuracy, %"]


def add(parser: argparse.ArgumentParser) -> None:
    """--pairs."""
    parser.add_argument(
        "--pairs",
        nargs="+",
        metavar="FILE",
        help="instead of perplexity: which sentence of minimal pairs is more probable; BLiMP's .jsonl, Linzen's .text"
        " with .gold, .tsv of good TAB bad [TAB phenomenon], folders of them, or blimp",
    )


def evaluate(args: argparse.Namespace, device: "torch.device") -> int:
    """Judge all pairs and print a table by phenomenon for every run."""
    from elman.data.minimal_pairs import read_pairs
    from elman.evaluation.minimal_pairs import by_field
    from elman.tasks.text.run import TextRun

    options.require_none(args, ("data", "ensemble", "ngram", "weights", "skip_first", "warm_up"), "--pairs")
    if args.method != "static":
        raise UserError("--pairs judges the model as it was trained; leave out --method")
    pairs = read_pairs(args.pairs)
    found: list[dict[str, Any]] = []
    for folder in args.folders:
        rows = _judge(TextRun(folder, device), pairs, args)
        fields = by_field(rows)
        facts = {"phenomena": [row.facts() for row in rows], "fields": [row.facts() for row in fields]}
        found.append({"run": str(folder), **facts})
        if not args.json and fields:
            show.print_table(f"{folder}: minimal pairs by field", _HEADER, [_cells(row) for row in fields])
        if not args.json:
            show.print_table(f"{folder}: minimal pairs", _HEADER, [_cells(row) for row in rows])
    if args.json:
        show.print_json(found[0] if len(found) == 1 else found)
    return 0


def _judge(run: "TextRun", pairs: "list[Pair]", args: argparse.Namespace) -> "list[Row]":
    from elman.data.text.sentences import Lexicon
    from elman.evaluation.minimal_pairs import code, judge_pairs, sentence_log_probs

    lexicon = Lexicon(run.vocabulary) if run.reads_spelling and not args.unknown_as_unk else None
    coded = code(pairs, run.vocabulary, run.tokeniser, lexicon)
    model = run.model if lexicon is None else run.model.knowing(lexicon.words)
    with show.counting(f"scoring pairs by {run.path}") as advance:
        return judge_pairs(coded, lambda ids, read: sentence_log_probs(model, ids, run.first, advance, read))


def _cells(row: "PairAccuracy") -> list[str]:
    low, high = row.accuracy.interval
    return [
        f"{row.field}: {row.phenomenon}" if row.field else row.phenomenon,
        f"{row.pairs:,}",
        f"{row.same:,}",
        _percent(row.accuracy.share),
        f"{_percent(low)} to {_percent(high)}",
        f"{row.known.count:,}",
        _percent(row.known.share),
    ]


def _percent(share: float) -> str:
    return "\N{EN DASH}" if share != share else f"{100 * share:.1f}"
