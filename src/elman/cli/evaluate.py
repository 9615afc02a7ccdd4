"""elman evaluate."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elman.cli import adapting, measures, options, pairs, show, transduce
from elman.errors import UserError

if TYPE_CHECKING:
    import torch


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "evaluate",
        help="perplexity of a split (of music: nats a step), every token counted once",
        description="Perplexity of a split. The stream is preceded by one <eos>, so that its first token counts too;"
        " the state is carried over the whole split, in music over each piece. With --ensemble the probabilities of"
        " several runs are averaged.",
    )
    parser.add_argument("folders", metavar="RUN", nargs="+", type=Path, help="run folders")
    options.add_split(parser, "another text, read with the run's vocabulary, or other music (default: its own)")
    parser.add_argument(
        "--warm-up",
        type=int,
        default=0,
        metavar="W",
        help="tokens that each column reads, uncounted, before its part (default: 0)",
    )
    parser.add_argument("--skip-first", action="store_true", help="leave out the first token, as published figures do")
    parser.add_argument(
        "--unknown-as-unk",
        action="store_true",
        help="read unknown words as <unk>, also by a model that reads spelling",
    )
    parser.add_argument("--ensemble", action="store_true", help="average the probabilities of the runs")
    parser.add_argument("--ngram", type=int, metavar="N", help="with --ensemble: add a Kneser-Ney model of order N")
    parser.add_argument(
        "--weights",
        type=float,
        nargs="+",
        metavar="W",
        help="with --ensemble: a weight a member, the n-gram last (default: equal)",
    )
    parser.add_argument("--beam", type=int, metavar="K", help="of a run on pairs: hypotheses kept; 1 is greedy")
    transduce.add_unconstrained(parser)
    adapting.add_methods(parser)
    pairs.add(parser)
    options.add_json(parser)
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Evaluate and print."""
    device = options.use_machine(args)
    options.at_least(1, "--streams", args.streams)
    options.at_least(0, "--warm-up", args.warm_up)
    if not args.ensemble and (args.ngram or args.weights):
        raise UserError("--ngram and --weights belong to --ensemble; add it")
    adapting.require_method(args)
    for other, asked in (("--pairs", args.pairs), ("--ensemble", args.ensemble)):
        if asked:
            options.require_none(args, ("beam", "unconstrained"), other)
    if args.pairs:
        return pairs.evaluate(args, device)
    one = _one if args.method == "static" else adapting.evaluate
    rows = [_ensemble(args, device)] if args.ensemble else [one(folder, args, device) for folder in args.folders]
    if args.json:
        show.print_json(rows[0] if len(rows) == 1 else rows)
        return 0
    title = f"{rows[0]['data']}, context {rows[0]['context']}, {rows[0]['method']}"
    show.print_figures(title, "run", [{"name": row["run"], **row} for row in rows])
    for row in rows:
        if "output" in row:
            measures.print_worth(row["run"], row["output"])
    return 0


def _one(folder: Path, args: argparse.Namespace, device: "torch.device") -> dict[str, Any]:
    from elman.tasks.open import open_run
    from elman.tasks.run import EvaluationOptions

    options.at_least(1, "--beam", args.beam)
    how = EvaluationOptions(
        split=args.split,
        data=args.data,
        streams=None if args.streams == 1 else args.streams,
        warm_up=args.warm_up,
        skip_first=args.skip_first,
        unknown_as_unk=args.unknown_as_unk,
        beam=args.beam,
        constrained=False if args.unconstrained else None,
    )
    loaded = open_run(folder, device)
    with show.counting(f"evaluating {folder}") as advance:
        return {"run": str(folder), **loaded.evaluate(how, advance)}


def _ensemble(args: argparse.Namespace, device: "torch.device") -> dict[str, Any]:
    from elman.evaluation.perplexity import score_of, text_result
    from elman.tasks.text.ensemble import ensemble_log_probs
    from elman.tasks.text.run import TextRun

    runs = [TextRun(folder, device) for folder in args.folders]
    members = len(runs) + (args.ngram is not None)
    if args.weights and len(args.weights) != members:
        raise UserError(f"--weights has {len(args.weights)} numbers, but the ensemble has {members} members")
    corpus = runs[0].corpus(args.data)
    reader = next((one for one in runs if one.reads_spelling), runs[0])
    split = corpus.split(args.split) if args.unknown_as_unk else reader.split(corpus, args.split)
    log_probs = ensemble_log_probs(runs, split, args.ngram, args.weights, args.streams, args.skip_first)
    names = [str(folder) for folder in args.folders] + ([f"Kneser-Ney {args.ngram}-gram"] if args.ngram else [])
    return {
        "run": " + ".join(names),
        "data": corpus.source,
        **text_result(score_of(log_probs), split).as_dict(),
        "method": "ensemble",
        "context": "carried",
        "streams": args.streams,
    }
