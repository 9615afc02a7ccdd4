"""How finished runs are measured by what they know of syntax: agreement on a grammar, minimal pairs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elman.data.minimal_pairs import read_pairs
from elman.evaluation.ngram import KneserNey
from elman.evaluation.pairs import Row, code, judge_pairs
from elman.evaluation.prefixes import Ids, sentence_log_probs
from elman.grammatical import examine, options_of
from elman.reproduce.claim import Axes, Measure, Measurement
from elman.run import load

PAIRS = "blimp"
AGREEMENT_TERMS = ("anaphor_agreement", "determiner_noun_agreement", "subject_verb_agreement")
"""BLiMP's linguistics terms that are about agreement."""


def agreement(folder: Path, sentences: int) -> Measurement:
    """Accuracy by levels of embedding on fresh sentences, and the distance from the grammar."""
    run = load(folder)
    found = examine(run, options_of(run, None), count=sentences)
    by_levels = {line.label: line for line in found.by_levels}
    figures = {f"accuracy, {label}": by_levels[label].accuracy.share for label in ("0 levels", "1 level", "2 levels")}
    figures["right number, 2 levels"] = by_levels["2 levels"].share
    figures["KL divergence"] = found.closeness.divergence
    return Measurement(figures, {"accuracy": [line.accuracy.share for line in found.by_levels[:4]]})


def minimal_pairs(folder: Path, pairs: str, order: int) -> Measurement:
    """Accuracy on minimal pairs, and that of a Kneser-Ney model of the same training text on the same pairs."""
    run = load(folder)
    coded = code(read_pairs([pairs]), run.vocabulary, run.tokeniser)
    counts = KneserNey.train(run.corpus().split("train").tokens, len(run.vocabulary), order)

    def by_counts(sentences: Sequence[Ids], _: Sequence[Ids]) -> npt.NDArray[np.float64]:
        return np.array([counts.log_prob(sentence, [run.first]).sum() for sentence in sentences])

    rows = judge_pairs(coded, lambda ids, _: sentence_log_probs(run.model, ids, run.first))
    others = judge_pairs(coded, by_counts)
    return Measurement(
        {
            "accuracy": rows[-1].accuracy.share,
            "agreement": _on_agreement(rows),
            "5-gram": others[-1].accuracy.share,
            "5-gram, agreement": _on_agreement(others),
        },
        {},
    )


def _on_agreement(rows: Sequence[Row]) -> float:
    chosen = [row.accuracy for row in rows if row.field in AGREEMENT_TERMS]
    return sum(one.successes for one in chosen) / sum(one.count for one in chosen)


AGREEMENT = Measure(
    "agreement",
    {
        "accuracy, 0 levels": "accuracy across 0 levels of embedding",
        "accuracy, 1 level": "across 1 level",
        "accuracy, 2 levels": "across 2 levels",
        "right number, 2 levels": "share of the right number in the probability of verbs, 2 levels",
        "KL divergence": "KL divergence from the grammar, nats a word",
    },
    agreement,
    {"sentences": 5_000},
    minutes=0.1,
    curve=Axes("accuracy", "levels of embedding", relative=False, logarithmic=False),
)

MINIMAL_PAIRS = Measure(
    "minimal-pairs",
    {
        "accuracy": "accuracy on BLiMP",
        "agreement": "on its sets of agreement",
        "5-gram": "Kneser-Ney 5-gram",
        "5-gram, agreement": "5-gram, agreement",
    },
    minimal_pairs,
    {"pairs": PAIRS, "order": 5},
    minutes=6.0,
)
