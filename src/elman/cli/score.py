"""elman score."""

import argparse
import csv
import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from elman.cli import adapting, options, show, states

if TYPE_CHECKING:
    import numpy as np

Scored: TypeAlias = Iterable[tuple[list[str], "np.ndarray"]]
"""The tokens of each sentence and their log-probabilities (nats)."""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "score",
        help="log-probability and surprisal of every token and sentence of a text",
        description="Log-probability (natural) and surprisal (bits) of a text, sentence by sentence. Sentences are"
        " independent of each other unless --document carries the state from one to the next.",
    )
    options.add_run(parser)
    parser.add_argument("file", metavar="FILE", help="a UTF-8 text, read as the training text was; - is standard input")
    parser.add_argument("--document", action="store_true", help="the sentences are one text: carry the state")
    parser.add_argument(
        "--by", choices=["token", "sentence"], default="token", help="a row a token (default) or sentence"
    )
    parser.add_argument(
        "--format", choices=["tsv", "jsonl"], default="tsv", help="tab-separated (default) or JSON lines"
    )
    parser.add_argument("--json", action="store_const", const="jsonl", dest="format", help="the same as --format jsonl")
    parser.add_argument(
        "--load-state", type=Path, metavar="FILE", help="with --adapt: go on where --save-state left a text"
    )
    parser.add_argument(
        "--save-state", type=Path, metavar="FILE", help="with --adapt: write state and adapted weights at the end"
    )
    adapting.add_online(parser, "the text, as one document")
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Score and print."""
    from elman.run import load

    device = options.use_machine(args)
    adapting.require_adapt(args, "load_state", "save_state")
    loaded = load(args.folder, device)
    options.write_any_text()
    tokeniser = loaded.tokeniser
    lines = options.read_lines(args.file, tokeniser.options)
    known = loaded.vocabulary.ids
    fold = tokeniser.options.lowercase
    rows = by_token if args.by == "token" else functools.partial(by_sentence, text=tokeniser.text)
    write = _tsv if args.format == "tsv" else _jsonl
    stream = adapting.begin(args, loaded, args.load_state) if args.adapt else None
    scored = loaded.score(lines, document=args.document) if stream is None else loaded.score_by(lines, stream.score_all)
    write(rows(scored, lambda word: (word.lower() if fold else word) not in known))
    if stream is not None and args.save_state is not None:
        states.save(args.save_state, loaded, stream.state, stream.unread, stream, args.statistics_tokens)
    return 0


def by_token(scored: Scored, unknown: Callable[[str], bool]) -> Iterator[dict[str, object]]:
    """A row for every token."""
    from elman.evaluation.scoring import surprisal

    for number, (words, log_probs) in enumerate(scored, start=1):
        bits = surprisal(log_probs)
        for position, word in enumerate(words):
            yield {
                "sentence": number,
                "position": position + 1,
                "token": word,
                "log_prob": round(float(log_probs[position]), 6),
                "surprisal": round(float(bits[position]), 6),
                "unknown": int(unknown(word)),
            }


def by_sentence(
    scored: Scored, unknown: Callable[[str], bool], text: Callable[[list[str]], str] = " ".join
) -> Iterator[dict[str, object]]:
    """A row for every sentence; `text` puts its tokens together."""
    from elman.evaluation.scoring import surprisal

    for number, (words, log_probs) in enumerate(scored, start=1):
        total = float(log_probs.sum(dtype="float64"))
        yield {
            "sentence": number,
            "tokens": len(words),
            "unknown": sum(map(unknown, words)),
            "log_prob": round(total, 6),
            "surprisal": round(float(surprisal([total])[0]), 6),
            "bits_per_token": round(float(surprisal([total / len(words)])[0]), 6),
            "text": text(words),
        }


def _tsv(rows: Iterable[dict[str, object]]) -> None:
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(row), delimiter="\t", lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)


def _jsonl(rows: Iterable[dict[str, object]]) -> None:
    for row in rows:
        show.print_json(row)
