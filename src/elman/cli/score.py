"""elman score: log-probability and surprisal of tokens, words or sentences."""

import csv
import io
import itertools
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec
from cyclopts import Parameter

from elman.cli import show, states, texts
from elman.cli.adaptation import OnlineOptions
from elman.cli.options import Machine, TextFile, TextRunFolder, UnknownOptions, refuse
from elman.drawing.page import require_file_name
from elman.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from elman.analysis.by_word import WordRow
    from elman.evaluation.adaptive_stream import AdaptiveStream
    from elman.evaluation.perplexity import Sentences
    from elman.evaluation.scoring import Unknown
    from elman.tasks.text.run import TextRun

Scored: TypeAlias = Iterable[tuple[list[str], "np.ndarray"]]
"""The tokens of each sentence and their log-probabilities (nats)."""

Row: TypeAlias = dict[str, object]

FileOption = Annotated[Path | None, Parameter(metavar="FILE")]


def score(
    run: TextRunFolder,
    file: TextFile,
    /,
    *,
    by: Literal["token", "word", "sentence"] = "token",
    document: bool = False,
    format: Literal["tsv", "jsonl"] = "tsv",
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    html: FileOption = None,
    unknown: UnknownOptions = UnknownOptions(),
    adaptation: OnlineOptions = OnlineOptions(),
    load_state: FileOption = None,
    save_state: FileOption = None,
    machine: Machine = Machine(),
) -> None:
    """Log-probability (natural) and surprisal (bits) of a text, sentence by sentence.

    Sentences are independent of each other unless --document carries the state from one to the next. With --adapt the
    model learns from the text, read as one document.

    Args:
        file: a UTF-8 text, read as the training text was; - is standard input
        by: one row per token, per word (with entropy, rank, frequency) or per sentence
        document: the sentences are one text: carry the state
        format: tab-separated or JSON lines
        as_json: the same as --format jsonl
        html: with --by word: also write a page with a heat map of the surprisals
        load_state: with --adapt: continue where --save-state left a text
        save_state: with --adapt: write state and adapted weights at the end
    """
    adaptation.check()
    if not adaptation.adapt:
        files = {"--load-state": load_state, "--save-state": save_state}
        refuse([name for name, value in files.items() if value is not None], "belongs to --adapt; add it")
    unknown.check()
    if html is not None:
        if by != "word":
            raise UserError("--html shows words; add --by word")
        require_file_name(html)
    loaded = machine.open_text(run)
    texts.write_any_text()
    lines = texts.read_lines(file, loaded.tokeniser.options)
    saved = None if load_state is None else states.load(load_state, loaded)
    text = loaded.reading(lines)
    stream = adaptation.stream(loaded, saved, text.model) if adaptation.adapt else None
    treatment = _treatment(unknown, loaded, text)
    write = _jsonl if as_json or format == "jsonl" else _tsv
    if by == "word":
        from elman.analysis.by_word import write_reading_page

        rows = _by_word(loaded, text, stream, treatment, document=document)
        rows, kept = (rows, iter(())) if html is None else itertools.tee(rows)
        write(map(msgspec.to_builtins, rows))
        if html is not None:
            write_reading_page(html, list(kept), loaded.recipe.title, texts.shown_name(file))
            print(html, file=sys.stderr)
    else:
        scored = _scored(loaded, text, stream, treatment, document=document)
        is_unknown = _unknown_word(loaded)
        write(by_token(scored, is_unknown) if by == "token" else by_sentence(scored, is_unknown, loaded.tokeniser.text))
    if stream is not None and save_state is not None:
        states.save(save_state, loaded, stream.state, stream.unread, stream, adaptation.statistics_tokens)


def _unknown_word(loaded: "TextRun") -> Callable[[str], bool]:
    """Whether a token as written is not in the vocabulary."""
    rules, known = loaded.options, loaded.vocabulary.ids
    return lambda word: (word.lower() if rules.folds_tokens else word) not in known


def _treatment(options: UnknownOptions, loaded: "TextRun", text: "Sentences") -> "Unknown":
    """How unknown words are scored; by default the unknown types are counted in the text."""
    from elman.evaluation.scoring import Unknown

    types = options.unknown_types
    if types is None and options.unknown == "spread":
        unknown, fold = _unknown_word(loaded), loaded.options.lowercase
        tokens = (token for sentence in text.words for token in sentence if unknown(token))
        types = len({token.lower() if fold else token for token in tokens})
        print(f"unknown types in the text: {types}", file=sys.stderr)
    return Unknown(treatment=options.unknown, types=types or 1)


def _scored(
    loaded: "TextRun", text: "Sentences", stream: "AdaptiveStream | None", treatment: "Unknown", *, document: bool
) -> Iterator[tuple[list[str], "np.ndarray"]]:
    unknown = _unknown_word(loaded)
    scored = loaded.score_text(text, document=document) if stream is None else stream.score_all(text.ids, text.inputs)
    for tokens, log_probs in zip(text.words, scored, strict=True):
        yield tokens, treatment.apply(log_probs, [unknown(token) for token in tokens])


def by_token(scored: Scored, unknown: Callable[[str], bool]) -> Iterator[Row]:
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
) -> Iterator[Row]:
    """A row for every sentence; sums are over the tokens that are scored, and `text` joins the tokens."""
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


def _by_word(
    loaded: "TextRun", text: "Sentences", stream: "AdaptiveStream | None", treatment: "Unknown", *, document: bool
) -> "Iterator[WordRow]":
    """A row for every word."""
    from elman.analysis.by_word import predict_text, word_rows

    if stream is None:
        predicted = predict_text(loaded, text, document=document)
    else:
        predicted = zip(text.words, stream.predict_all(text.ids, text.inputs), strict=True)
    return word_rows(loaded, predicted, treatment)


def _rounded(value: float) -> float | None:
    """None, an empty cell, for a token that is left out."""
    return None if math.isnan(value) else round(float(value), 6)


def _tsv(rows: Iterable[Row]) -> None:
    line = io.StringIO(newline="")
    for number, row in enumerate(rows):
        # With \r in its end a line has every token quoted that holds one, as it has from Python 3.13 on.
        writer = csv.writer(line, delimiter="\t", lineterminator="\r\n")
        for cells in ([list(row)] if number == 0 else []) + [list(row.values())]:
            writer.writerow(cells)
            sys.stdout.write(line.getvalue().removesuffix("\r\n") + "\n")
            line.seek(0)
            line.truncate()


def _jsonl(rows: Iterable[Row]) -> None:
    for row in rows:
        show.print_json(row)
