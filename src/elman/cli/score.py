"""elman score."""

import argparse
import csv
import functools
import io
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from elman.cli import adapting, options, show, states
from elman.cli import score_words as words

if TYPE_CHECKING:
    import numpy as np

    from elman.evaluation.adaptive_stream import AdaptiveStream
    from elman.evaluation.perplexity import Sentences
    from elman.tasks.text.run import TextRun

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
        "--by",
        choices=["token", "word", "sentence"],
        default="token",
        help="a row a token (default), word (with entropy, rank, frequency) or sentence",
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
    options.add_unknown(parser)
    parser.add_argument("--html", type=Path, metavar="FILE", help="with --by word: a heat map of the surprisals, too")
    adapting.add_online(parser, "the text, as one document")
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Score and print."""
    from elman.tasks.text.run import TextRun

    device = options.use_machine(args)
    adapting.require_adapt(args, "load_state", "save_state")
    words.require(args)
    loaded = TextRun(args.folder, device)
    options.write_any_text()
    lines = options.read_lines(args.file, loaded.tokeniser.options)
    saved = None if args.load_state is None else states.load(args.load_state, loaded)
    text = loaded.reading(lines)
    stream = adapting.begin(args, loaded, saved, text.model) if args.adapt else None
    write = _tsv if args.format == "tsv" else _jsonl
    if args.by == "word":
        write(words.rows(args, loaded, text, stream))
    else:
        rows = by_token if args.by == "token" else functools.partial(by_sentence, text=loaded.tokeniser.text)
        write(rows(_scored(args, loaded, text, stream), words.unknown_word(loaded)))
    if stream is not None and args.save_state is not None:
        states.save(args.save_state, loaded, stream.state, stream.unread, stream, args.statistics_tokens)
    return 0


def _scored(
    args: argparse.Namespace, loaded: "TextRun", text: "Sentences", stream: "AdaptiveStream | None"
) -> Iterator[tuple[list[str], "np.ndarray"]]:
    treatment, unknown = words.treatment(args, loaded, text), words.unknown_word(loaded)
    scored = (
        loaded.score_text(text, document=args.document) if stream is None else stream.score_all(text.ids, text.inputs)
    )
    for tokens, log_probs in zip(text.words, scored, strict=True):
        yield tokens, treatment.apply(log_probs, [unknown(token) for token in tokens])


def by_token(scored: Scored, unknown: Callable[[str], bool]) -> Iterator[dict[str, object]]:
    """A row for every token."""
    from elman.evaluation.scoring import surprisal

    for number, (tokens, log_probs) in enumerate(scored, start=1):
        bits = surprisal(log_probs)
        for position, token in enumerate(tokens):
            yield {
                "sentence": number,
                "position": position + 1,
                "token": token,
                "log_prob": _rounded(log_probs[position]),
                "surprisal": _rounded(bits[position]),
                "unknown": int(unknown(token)),
            }


def by_sentence(
    scored: Scored, unknown: Callable[[str], bool], text: Callable[[list[str]], str] = " ".join
) -> Iterator[dict[str, object]]:
    """A row for every sentence; sums are over the tokens that are scored, and `text` puts the tokens together."""
    import numpy as np

    from elman.evaluation.scoring import surprisal

    for number, (tokens, log_probs) in enumerate(scored, start=1):
        counted = log_probs[~np.isnan(log_probs)]
        total = float(counted.sum(dtype="float64"))
        mean = total / len(counted) if len(counted) else math.nan
        yield {
            "sentence": number,
            "tokens": len(tokens),
            "unknown": sum(map(unknown, tokens)),
            "log_prob": _rounded(total),
            "surprisal": _rounded(surprisal([total])[0]),
            "bits_per_token": _rounded(surprisal([mean])[0]),
            "text": text(tokens),
        }


def _rounded(value: float) -> float | None:
    """None, an empty cell, for a token that is left out."""
    return None if math.isnan(value) else round(float(value), 6)


def _tsv(rows: Iterable[dict[str, object]]) -> None:
    line = io.StringIO(newline="")
    for number, row in enumerate(rows):
        # With \r in its end a line has every token quoted that holds one, as it has from Python 3.13 on.
        writer = csv.writer(line, delimiter="\t", lineterminator="\r\n")
        for cells in ([list(row)] if number == 0 else []) + [list(row.values())]:
            writer.writerow(cells)
            sys.stdout.write(line.getvalue().removesuffix("\r\n") + "\n")
            line.seek(0)
            line.truncate()


def _jsonl(rows: Iterable[dict[str, object]]) -> None:
    for row in rows:
        show.print_json(row)
