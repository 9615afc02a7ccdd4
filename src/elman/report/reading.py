"""The page of a text that was read word by word: a heat map of surprisal and what was hardest."""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from elman.questions.by_word import WordRow
from elman.report.analysis import Section, Table, write_page
from elman.report.records import Word
from elman.report.surprisal import HOTTEST, heat_map, mean_bits

HARDEST = 20

SCALE = Markup('<div class="scale" aria-hidden="true">0 bits <i></i> {} or more</div>\n').format(int(HOTTEST))


def write_reading_page(out: Path, rows: Sequence[WordRow], model: str, text: str) -> Path:
    """Write the page of a text and return where it is.

    Args:
        out: the file.
        rows: from `elman.questions.by_word.word_rows`.
        model: the title of the model.
        text: the name of the text.

    Raises:
        UserError: `out` cannot be written.

    """
    words = [Word(row.word, row.surprisal) for row in rows]
    mean, scored = mean_bits(words), sum(word.surprisal is not None for word in words)
    unknown = sum(row.unknown for row in rows)
    verdict = f"{scored:,} words scored, {unknown:,} of {len(rows):,} unknown"
    verdict += "." if math.isnan(mean) else f"; {mean:.2f} bits a word on average."
    sections = [
        Section("Surprisal", ["Each word on a ground the warmer, the more bits it took to predict."], body=_map(rows)),
        Section("What was hardest", tables=[_hardest(rows)]),
    ]
    return write_page(out, kind="text, word by word", title=text, verdict=verdict, sections=sections, text=[model])


def _map(rows: Sequence[WordRow]) -> Markup:
    sentences = itertools.groupby(rows, key=lambda row: row.sentence)
    paragraphs = (heat_map([Word(row.word, row.surprisal) for row in group]) for _, group in sentences)
    return SCALE + Markup("\n").join(Markup('<p class="heat">{}</p>').format(paragraph) for paragraph in paragraphs)


def _hardest(rows: Sequence[WordRow]) -> Table:
    scored = sorted((row for row in rows if row.surprisal is not None), key=lambda row: -(row.surprisal or 0.0))
    cells = [
        [
            row.word,
            str(row.sentence),
            str(row.position),
            f"{row.surprisal:.2f}",
            f"{row.entropy:.2f}",
            f"{row.entropy_reduction:.2f}",
            f"{row.rank:,}",
            "" if row.frequency is None else f"{row.frequency:,}",
            "yes" if row.unknown else "",
        ]
        for row in scored[:HARDEST]
    ]
    header = ["word", "sentence", "position", "surprisal", "entropy", "reduction", "rank", "in training", "unknown"]
    return Table("", header, cells, "Surprisal, entropy before the word and its reduction are in bits.")
