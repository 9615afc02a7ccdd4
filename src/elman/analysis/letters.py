"""Where words begin, by the surprisal of letters (Elman 1990, Fig. 6)."""

import itertools
import math
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from scipy.stats import mannwhitneyu

from elman.data.text.vocabulary import EOS
from elman.data.windows import EvaluationWindows
from elman.drawing.page import Figure, Section, Table, write_page
from elman.drawing.style import MUTED, SERIES, canvas, label, svg
from elman.errors import UserError
from elman.evaluation.perplexity import token_log_probs
from elman.jobs import Advance
from elman.tasks.text.run import TextRun

PLACES = 8
"""Letters are counted by place up to this one in the word; later ones together."""

SHOWN = 60
"""Letters of the beginning that are drawn."""


class Place(NamedTuple):
    """The letters of one place in their words: how many, and their mean surprisal in bits."""

    label: str
    letters: int
    bits: float


class Letters(NamedTuple):
    """The surprisal of letters by place.

    Attributes:
        places: from the first letter on.
        area: the probability that a letter which begins a word has a higher surprisal than one which does not, the area
            under the curve of the receiver; .5 by chance.
        beginning: letters of the text with their bits, from the beginning.
    """

    places: list[Place]
    area: float
    beginning: list[tuple[str, float]]

    @property
    def verdict(self) -> str:
        """The finding in a sentence."""
        return (
            f"A letter that begins a word has a higher surprisal than one that does not in {100 * self.area:.1f} % of"
            " pairs (50 % by chance)."
        )


def places_in_words(symbols: Sequence[str]) -> npt.NDArray[np.int64]:
    """The place of each letter in its word, from 1; 0 for white space and punctuation.

    Signs that combine with the letter before them, such as vowels of Devanagari and accents, have places as letters do.

    >>> places_in_words(list("to be.") + ["<eos>", "a"])
    array([1, 2, 0, 1, 2, 0, 0, 1])
    """
    found, place = [], 0
    for symbol in symbols:
        inner = len(symbol) == 1 and (symbol.isalnum() or (place and unicodedata.category(symbol).startswith("M")))
        place = place + 1 if inner else 0
        found.append(place)
    return np.array(found, dtype=np.int64)


def by_place(run: TextRun, windows: EvaluationWindows, advance: Advance = None) -> Letters:
    """The surprisal of the letters of a stream by their place in words.

    Raises UserError where the run does not read characters, or the text has no words of several letters.
    """
    if run.options.tokenisation != "characters":
        raise UserError(
            f"{run.path} has data.tokenisation = {run.options.tokenisation}; elman analyze letters is for runs on"
            " characters"
        )
    bits = -token_log_probs(run.model, windows, advance).astype(np.float64) / math.log(2)
    symbols = [run.vocabulary.words[token] for token in windows.tokens]
    at = places_in_words(symbols)
    first, later = bits[at == 1], bits[at > 1]
    if not len(first) or not len(later):
        raise UserError("the text has no words of several letters with spaces or marks between; give another by --data")
    places = [
        Place(str(place) if place < PLACES else f"{place} and later", int(chosen.sum()), float(bits[chosen].mean()))
        for place in range(1, PLACES + 1)
        if (chosen := at == place if place < PLACES else at >= place).any()
    ]
    area = float(mannwhitneyu(first, later).statistic) / (len(first) * len(later))
    return Letters(places, area, list(itertools.islice(zip(symbols, bits.tolist(), strict=True), SHOWN)))


def write_letters_page(out: Path, found: Letters, *, run: str, text: str) -> Path:
    """Write the page; raises UserError where `out` is a folder or cannot be written."""
    rows = [[place.label, f"{place.letters:,}", f"{place.bits:.3f}"] for place in found.places]
    return write_page(
        out,
        kind="Letters in words",
        title=run,
        verdict=found.verdict,
        text=[
            f"The surprisal of the letters of {text}, after Elman (1990): what follows within a word is foreseen better"
            " than how the next word begins. Here the network sees the spaces; Elman's did not."
        ],
        sections=[
            Section("The beginning of the text", figures=[Figure("", _beginning(found.beginning))]),
            Section("By place in the word", tables=[Table("", ["letter", "count", "bits"], rows)]),
        ],
    )


def _beginning(letters: Sequence[tuple[str, float]]) -> Markup:
    figure, axes = canvas("wide")
    figure.set_size_inches(9.6, 3.0)
    bits = [each for _, each in letters]
    axes.plot(bits, "-", color=SERIES[0], linewidth=1.0)
    shown = {EOS: "⏎", " ": "␣"}
    for place, (letter, height) in enumerate(letters):
        axes.annotate(
            shown.get(letter, letter), (place, height), xytext=(0, 3), textcoords="offset points", fontsize=8,
            color=MUTED, ha="center",
        )  # fmt: skip
    axes.set_xticks([])
    label(axes, "", "bits")
    return svg(figure, "letters", "Surprisal letter by letter", "".join(letter for letter, _ in letters))
