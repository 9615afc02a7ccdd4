"""The rows of elman score: by token, word, region and sentence; what is carried into them; how they are written."""

import csv
import io
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO, TypeAlias

from elman.cli import show
from elman.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from elman.data.stimuli import Stimulus
    from elman.data.text.reading import Sentence
    from elman.data.text.tokeniser import Tokeniser
    from elman.evaluation.scoring import Unknown

Row: TypeAlias = dict[str, object]

LAGGED = "previous_"  # how the columns of --spill-over begin


def token_rows(number: int, sentence: "Sentence", log_probs: "np.ndarray", treatment: "Unknown") -> Iterator[Row]:
    """A row for every piece of the sentence; one that is not read has empty cells."""
    from elman.evaluation.scoring import surprisal

    scored = sentence.spread(treatment.apply(log_probs, sentence.unknown_tokens))
    bits = surprisal(scored)
    for position, (token, unknown) in enumerate(zip(sentence.pieces, sentence.unknown, strict=True)):
        yield {
            "sentence": number,
            "position": position + 1,
            "token": token,
            "log_prob": rounded(scored[position]),
            "surprisal": rounded(bits[position]),
            "unknown": int(unknown),
        }


def sentence_row(
    number: int, sentence: "Sentence", log_probs: "np.ndarray", treatment: "Unknown", tokeniser: "Tokeniser"
) -> Row:
    """The row of a sentence; sums are over the tokens that are scored, and empty where none is."""
    import numpy as np

    from elman.evaluation.scoring import surprisal

    scored = treatment.apply(log_probs, sentence.unknown_tokens)
    counted = scored[~np.isnan(scored)]
    total = float(counted.sum(dtype="float64")) if len(counted) else math.nan
    return {
        "sentence": number,
        "tokens": len(sentence.ids),
        "unknown": sum(sentence.unknown),
        "log_prob": rounded(total),
        "surprisal": rounded(surprisal([total])[0]),
        "bits_per_token": rounded(surprisal([total])[0] / max(1, len(counted))),
        "text": _text(sentence, tokeniser),
    }


def _text(sentence: "Sentence", tokeniser: "Tokeniser") -> str:
    """The sentence as it stands in the text, without the `<eos>` at its end; between words there is one space."""
    from elman.data.text.vocabulary import EOS

    ends = tokeniser.options.eos != "none" and sentence.pieces[-1:] == [EOS]
    if tokeniser.options.spelt:
        return tokeniser.decode(sentence.pieces[:-1] if ends else sentence.pieces)
    words = [word.text for word in sentence.words(tokeniser)]
    return " ".join(words[:-1] if ends else words)


def region_rows(
    number: int,
    sentence: "Sentence",
    log_probs: "np.ndarray",
    treatment: "Unknown",
    stimulus: "Stimulus",
    places: Sequence[int],
) -> Iterator[Row]:
    """A row for every region; sums are over the tokens that are scored, and empty where none is."""
    import numpy as np

    from elman.data.text.vocabulary import EOS
    from elman.evaluation.scoring import surprisal

    bits = surprisal(sentence.spread(treatment.apply(log_probs, sentence.unknown_tokens)))
    own = np.array(places)
    for region in range(max(places) + 1):
        inside = np.flatnonzero(own == region)
        counted = bits[inside][~np.isnan(bits[inside])]
        text = stimulus.regions[region] if region < len(stimulus.regions) else EOS
        yield {
            "sentence": number,
            "region": region + 1,
            "text": text,
            "words": len(text.split()),
            "unknown": sum(sentence.unknown[index] for index in inside),
            "surprisal": rounded(counted.sum()) if len(counted) else None,
        }


def with_lags(rows: Sequence[Row], lags: int) -> Sequence[Row]:
    """The rows of a sentence, each with the surprisals of those before it: `previous_1` is the last of them."""
    for index, row in enumerate(rows):
        for lag in range(1, lags + 1):
            row[f"{LAGGED}{lag}"] = rows[index - lag]["surprisal"] if lag <= index else None
    return rows


def carrying(carried: dict[str, str], row: Row) -> Row:
    """A row after the cells that its stimulus has; raises UserError where both have a column."""
    for name in carried:
        if name in row:
            raise UserError(f"the column {name!r} of the table is also one of the output; rename it in the table")
    return {**carried, **row}


def rounded(value: float) -> float | None:
    """None, an empty cell, for a token that is left out."""
    return None if math.isnan(value) else round(float(value), 6)


def write_tsv(rows: Iterable[Row], *, flush: bool = False, out: TextIO | None = None, header: bool = True) -> None:
    """Tab-separated under a header, cells quoted as in CSV; with `flush` each row at once.

    They are written to standard output, or `out`.
    """
    out = sys.stdout if out is None else out
    line = io.StringIO(newline="")
    # With \r in its end a line has every token quoted that holds one, as it has from Python 3.13 on.
    writer = csv.writer(line, delimiter="\t", lineterminator="\r\n")
    for number, row in enumerate(rows):
        for cells in ([list(row)] if header and number == 0 else []) + [list(row.values())]:
            writer.writerow(cells)
            out.write(line.getvalue().removesuffix("\r\n") + "\n")
            line.seek(0)
            line.truncate()
        if flush:
            out.flush()


def write_jsonl(rows: Iterable[Row], *, flush: bool = False, out: TextIO | None = None) -> None:
    """JSON lines; `flush` and `out` as for `write_tsv`."""
    out = sys.stdout if out is None else out
    for row in rows:
        out.write(f"{show.json_line(row)}\n")
        if flush:
            out.flush()
