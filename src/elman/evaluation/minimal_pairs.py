"""Accuracy on minimal pairs: how often the grammatical sentence is the more probable one."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elman.data.minimal_pairs import Pair
from elman.data.text.sentences import Lexicon, fit
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.vocabulary import EOS, Vocabulary
from elman.errors import UserError
from elman.evaluation.prediction import Ids
from elman.evaluation.statistics import Proportion

Scorer = Callable[[Sequence[Ids], Sequence[Ids]], npt.NDArray[np.float64]]
"""Log-probabilities [n] of sentences' ids, which are read as the second say (`Coded`)."""


class Coded(NamedTuple):
    """A pair as a model reads it.

    Attributes:
        phenomenon, field: as in `Pair`.
        good, bad: ids, as they are predicted.
        read: how the two are read: the same ids, but to a model that reads spelling unknown words have their own.
        unknown: words outside the vocabulary in either sentence, each position once.
        same: whether the two are the same to the model, since they differ in unknown words only; where those are
            spelled, in the last token only, after which nothing comes.

    """

    phenomenon: str
    field: str
    good: Ids
    bad: Ids
    read: tuple[Ids, Ids]
    unknown: int
    same: bool


class Row(NamedTuple):
    """The pairs of a phenomenon.

    Attributes:
        phenomenon, field: which.
        pairs: how many there are.
        same: of them, those that differ in unknown words only and are the same to the model; they are not judged.
        accuracy: pairs judged for the grammatical sentence.
        known: the same of pairs without unknown words.

    """

    phenomenon: str
    field: str
    pairs: int
    same: int
    accuracy: Proportion
    known: Proportion

    def facts(self) -> dict[str, Any]:
        """As JSON."""
        low, high = self.accuracy.interval
        return {
            "phenomenon": self.phenomenon,
            "field": self.field,
            "pairs": self.pairs,
            "differ_in_unknown_words_only": self.same,
            "judged": self.accuracy.count,
            "accuracy": self.accuracy.share if self.accuracy.count else None,
            "low": low,
            "high": high,
            "without_unknown_words": self.known.count,
            "accuracy_without_unknown_words": self.known.share if self.known.count else None,
        }


def code(
    pairs: Sequence[Pair], vocabulary: Vocabulary, tokeniser: Tokeniser, lexicon: Lexicon | None = None
) -> list[Coded]:
    """The pairs as ids.

    Args:
        pairs: the sentences.
        vocabulary: of the model.
        tokeniser: of the model.
        lexicon: takes up unknown words, for a model that reads spelling; None: they are read as `<unk>`.

    Raises:
        UserError: a sentence has no token, or an unknown word and the vocabulary no `<unk>`.

    """
    return [_code(pair, vocabulary, tokeniser, lexicon) for pair in pairs]


def _code(pair: Pair, vocabulary: Vocabulary, tokeniser: Tokeniser, lexicon: Lexicon | None) -> Coded:
    end = [EOS] if pair.whole and vocabulary.eos is not None else []
    sides: list[tuple[Ids, Ids]] = []
    unknown: set[tuple[int, str]] = set()
    for text in (pair.good, pair.bad):
        as_it_is = pair.tokenised and tokeniser.options.tokenisation == "words"
        words = text.split() if as_it_is else fit(text, vocabulary, tokeniser)
        if not words:
            raise UserError(f"{pair.phenomenon}: the sentence {text!r} has no token that the model could read")
        unknown |= {(at, word) for at, word in enumerate(words) if word not in vocabulary.ids}
        ids = vocabulary.encode([*words, *end])
        sides.append((ids, ids if lexicon is None else lexicon.read([*words, *end]).astype(np.int32)))
    (good, read_good), (bad, read_bad) = sides
    same = np.array_equal(good, bad) and np.array_equal(read_good[:-1], read_bad[:-1])
    return Coded(pair.phenomenon, pair.field, good, bad, (read_good, read_bad), len(unknown), same)


def judge_pairs(coded: Sequence[Coded], score: Scorer) -> list[Row]:
    """A row a phenomenon, in the order of their first pairs, and one for all at the end."""
    wins = np.zeros(len(coded), dtype=bool)
    judged = [index for index, pair in enumerate(coded) if not pair.same]
    sides = [side for index in judged for side in (coded[index].good, coded[index].bad)]
    log_probs = score(sides, [side for index in judged for side in coded[index].read])
    wins[judged] = log_probs[::2] > log_probs[1::2]
    groups: dict[tuple[str, str], list[int]] = {}
    for index, pair in enumerate(coded):
        groups.setdefault((pair.phenomenon, pair.field), []).append(index)
    rows = [_row(*names, coded, wins, members) for names, members in groups.items()]
    return [*rows, _row("all", "", coded, wins, range(len(coded)))]


def by_field(rows: Sequence[Row]) -> list[Row]:
    """The rows of phenomena added up by their field, where there are several."""
    fields: dict[str, list[Row]] = {}
    for row in rows:
        if row.field:
            fields.setdefault(row.field, []).append(row)
    return [_sum(field, found) for field, found in fields.items()] if len(fields) > 1 else []


def _sum(field: str, rows: Sequence[Row]) -> Row:
    accuracy, known = (
        Proportion(sum(one.successes for one in each), sum(one.count for one in each))
        for each in ([row.accuracy for row in rows], [row.known for row in rows])
    )
    return Row(field, "", sum(row.pairs for row in rows), sum(row.same for row in rows), accuracy, known)


def _row(phenomenon: str, field: str, coded: Sequence[Coded], wins: npt.NDArray[np.bool_], of: Sequence[int]) -> Row:
    judged = [index for index in of if not coded[index].same]
    known = [index for index in judged if not coded[index].unknown]
    accuracy, without = (Proportion(int(wins[some].sum()), len(some)) for some in (judged, known))
    return Row(phenomenon, field, len(of), len(of) - len(judged), accuracy, without)
