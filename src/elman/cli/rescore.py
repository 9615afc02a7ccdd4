"""elman rescore."""

import argparse
import json
import sys
from typing import TYPE_CHECKING

from elman.cli import options
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.data.hypotheses import Hypothesis
    from elman.tasks.text.rescoring import Mix


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "rescore",
        help="choose among the n best hypotheses of a recogniser",
        description="Adds the log-probability (natural) of each hypothesis to its given scores and prints the best of"
        " each utterance: sum of the given scores + weight * log p(text) - word penalty * words.",
    )
    options.add_run(parser)
    parser.add_argument("file", metavar="NBEST", help="rows of id, scores and text with tabs between; - is stdin")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--kaldi", action="store_true", help="NBEST and references are Kaldi's: utterance-N words")
    forms.add_argument(
        "--srilm", action="store_true", help="NBEST is a folder, or a list, of SRILM's n-best files, one an utterance"
    )
    parser.add_argument(
        "--costs",
        metavar="FILE",
        nargs="+",
        default=[],
        help="with --kaldi: files of utterance-N cost (negative scores)",
    )
    parser.add_argument("--weight", type=float, metavar="W", help="of the language model (default: 1)")
    parser.add_argument("--word-penalty", type=float, metavar="P", help="taken off for each word (default: 0)")
    parser.add_argument(
        "--given-weights", type=float, nargs="+", metavar="W", help="one for each given score (default: 1 each)"
    )
    parser.add_argument("--references", metavar="FILE", help="id and text: tell the word error rate on stderr")
    parser.add_argument(
        "--tune",
        action="store_true",
        help="choose weight, penalty and given weights by the word error rate on --references; one that is given stays",
    )
    parser.add_argument("--carry", action="store_true", help="read each utterance after the texts chosen before it")
    parser.add_argument("--all", action="store_true", help="print all hypotheses with their scores, the best first")
    options.add_unknown(parser)
    parser.add_argument("--batch-size", type=int, default=32, metavar="N", help="hypotheses at a time (default: 32)")
    parser.add_argument("--json", action="store_true", help="JSON lines with all scores")
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Rescore and print."""
    from elman.data.hypotheses import read_references
    from elman.evaluation.scoring import Unknown
    from elman.tasks.text import rescoring
    from elman.tasks.text.run import TextRun

    _require(args)
    device = options.use_machine(args)
    hypotheses = _read(args)
    mix = _mix(args, len(hypotheses[0].scores))
    references = (
        None if args.references is None else read_references(options.read_lines(args.references), args.references)
    )
    loaded = TextRun(args.folder, device)
    read = rescoring.read_hypotheses(loaded, hypotheses)
    types = args.unknown_types or rescoring.unknown_types(loaded, read)
    treatment = Unknown(treatment=args.unknown, types=types)
    if args.carry:
        log_probs = rescoring.log_probs_carried(loaded, hypotheses, read, treatment, mix)
    else:
        log_probs = rescoring.log_probs_fresh(loaded, read, treatment, args.batch_size)
    if references is not None:
        mix = _held_against(args, hypotheses, log_probs, mix, references)
    _print(args, hypotheses, log_probs, mix)
    return 0


def _require(args: argparse.Namespace) -> None:
    options.at_least(1, "--batch-size", args.batch_size)
    options.require_unknown(args)
    if args.costs and not args.kaldi:
        raise UserError("--costs belongs to --kaldi; rows of tabs have their scores in them")
    if args.tune and args.references is None:
        raise UserError("--tune needs --references to tune on")
    if args.tune and args.carry:
        raise UserError("--tune and --carry: what is carried depends on the weight; tune without --carry first")


def _read(args: argparse.Namespace) -> "list[Hypothesis]":
    from pathlib import Path

    from elman.data.hypotheses import read_kaldi, read_srilm, read_tsv

    if args.srilm:
        return read_srilm(Path(args.file))
    lines = options.read_lines(args.file)
    if args.kaldi:
        return read_kaldi(lines, [(file, options.read_lines(file)) for file in args.costs], args.file)
    return read_tsv(lines, args.file)


def _mix(args: argparse.Namespace, num_scores: int) -> "Mix":
    from elman.tasks.text.rescoring import Mix

    given = args.given_weights
    if given is not None and len(given) != num_scores:
        raise UserError(f"--given-weights has {len(given)} numbers, the hypotheses have {num_scores} scores each")
    return Mix(
        weight=1.0 if args.weight is None else args.weight,
        word_penalty=args.word_penalty or 0.0,
        given_weights=None if given is None else tuple(given),
    )


def _held_against(
    args: argparse.Namespace,
    hypotheses: "list[Hypothesis]",
    log_probs: list[float],
    mix: "Mix",
    references: dict[str, str],
) -> "Mix":
    import msgspec

    from elman.tasks.text.rescoring import Grid, Trial

    missing = sorted({one.utterance for one in hypotheses} - references.keys())
    if missing:
        raise UserError(f"{args.references}: no reference of {missing[0]}, one of {len(missing)} that are missing")
    trial = Trial(hypotheses, log_probs, references)
    alone = trial.error_rate(msgspec.structs.replace(mix, weight=0.0))
    if args.tune:
        stay = {"weights": args.weight, "penalties": args.word_penalty}
        grid = Grid(**{name: (value,) for name, value in stay.items() if value is not None})
        mix, rate = trial.tuned(mix, grid if args.given_weights is None else msgspec.structs.replace(grid, given=()))
        given = "" if mix.given_weights is None else f" --given-weights {' '.join(f'{w:g}' for w in mix.given_weights)}"
        print(f"tuned: --weight {mix.weight:g} --word-penalty {mix.word_penalty:g}{given}", file=sys.stderr)
    else:
        rate = trial.error_rate(mix)
    print(f"word error rate {100 * rate:.2f} %; without the model {100 * alone:.2f} %", file=sys.stderr)
    return mix


def _print(args: argparse.Namespace, hypotheses: "list[Hypothesis]", log_probs: list[float], mix: "Mix") -> None:
    from elman.tasks.text.rescoring import ranked

    if args.all and not args.json:
        given = [f"given_{number + 1}" for number in range(len(hypotheses[0].scores))]
        print("id", "rank", "score", "log_prob", *given, "text", sep="\t")
    for utterance, order in ranked(hypotheses, log_probs, mix):
        for rank, index in enumerate(order if args.all else order[:1], start=1):
            one, log_prob = hypotheses[index], round(log_probs[index], 6)
            score = round(mix.score(one, log_probs[index]), 6)
            if args.json:
                row = {"id": utterance, "rank": rank, "score": score, "log_prob": log_prob, "given": one.scores}
                print(json.dumps(row | {"text": one.text}, ensure_ascii=False))
            elif args.all:
                print(utterance, rank, score, log_prob, *one.scores, one.text, sep="\t")
            else:
                print(utterance, one.text, sep=" " if args.kaldi else "\t")
