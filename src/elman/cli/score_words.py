"""elman score --by word, and how unknown words are treated."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from elman.cli import options
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.analysis.by_word import WordRow
    from elman.evaluation.adaptive_stream import AdaptiveStream
    from elman.evaluation.perplexity import Sentences
    from elman.evaluation.scoring import Unknown
    from elman.tasks.text.run import TextRun


def require(args: argparse.Namespace) -> None:
    """Raises UserError where options do not fit."""
    options.require_unknown(args)
    if args.html is not None:
        from elman.drawing.page import require_file_name

        if args.by != "word":
            raise UserError("--html shows words; add --by word")
        require_file_name(args.html)


def unknown_word(loaded: "TextRun") -> Callable[[str], bool]:
    """Whether a token as written is not in the vocabulary."""
    rules, known = loaded.options, loaded.vocabulary.ids
    return lambda word: (word.lower() if rules.folds_tokens else word) not in known


def treatment(args: argparse.Namespace, loaded: "TextRun", text: "Sentences") -> "Unknown":
    """What --unknown and --unknown-types say; by default the types are counted in the text."""
    from elman.evaluation.scoring import Unknown

    types = args.unknown_types
    if types is None and args.unknown == "spread":
        unknown, fold = unknown_word(loaded), loaded.options.lowercase
        tokens = (token for sentence in text.words for token in sentence if unknown(token))
        types = len({token.lower() if fold else token for token in tokens})
        print(f"unknown types in the text: {types}", file=sys.stderr)
    return Unknown(treatment=args.unknown, types=types or 1)


def rows(
    args: argparse.Namespace, loaded: "TextRun", text: "Sentences", stream: "AdaptiveStream | None"
) -> Iterator[dict[str, object]]:
    """A row for every word; with --html the page is written after the last."""
    import msgspec

    from elman.analysis.by_word import predict_text, word_rows

    if stream is None:
        predicted = predict_text(loaded, text, document=args.document)
    else:
        predicted = zip(text.words, stream.predict_all(text.ids, text.inputs), strict=True)
    kept = []
    for row in word_rows(loaded, predicted, treatment(args, loaded, text)):
        yield msgspec.to_builtins(row)
        if args.html is not None:
            kept.append(row)
    if args.html is not None:
        _write(args, loaded, kept)


def _write(args: argparse.Namespace, loaded: "TextRun", kept: "Iterable[WordRow]") -> None:
    from elman.analysis.by_word import write_reading_page

    write_reading_page(args.html, list(kept), loaded.recipe.title, "standard input" if args.file == "-" else args.file)
    print(args.html, file=sys.stderr)
