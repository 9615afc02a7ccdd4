"""How finished runs are measured by what they know of syntax: agreement on a grammar, minimal pairs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elman.analysis.by_word import by_frequency
from elman.analysis.grammar import examine, options_of
from elman.data.minimal_pairs import read_pairs
from elman.evaluation.minimal_pairs import Ids, PairAccuracy, code, judge_pairs, sentence_log_probs
from elman.evaluation.ngram import KneserNey
from elman.evaluation.perplexity import score_of
from elman.objective import perplexity
from elman.reproduce.claim import Axes, Measure, Measurement
from elman.tasks.text.ensemble import run_log_probs
from elman.tasks.text.run import TextRun

# FOLDED reproduce/spelling_measures.py: How runs that read spelling, and their twins, are measured.
RARE = 25
"""Words seen fewer times in training are rare."""


def parameters_and_rare_words(folder: Path, below: int) -> Measurement:
    """Perplexity of the test split, of its words seen fewer than `below` times and after them; number of parameters."""
    run = TextRun(folder)
    corpus = run.corpus()
    split, train = run.split(corpus, "test"), corpus.split("train").tokens
    log_probs = run_log_probs(run, split)
    rare = by_frequency(log_probs, split.tokens, train, len(run.vocabulary), run.vocabulary.unk, (below,))[0]
    assert rare.perplexity is not None
    assert rare.following_perplexity is not None
    figures = {
        "test perplexity": score_of(log_probs).perplexity,
        "parameters": float(sum(parameter.numel() for parameter in run.model.parameters())),
        "rare words": rare.perplexity,
        "after rare words": rare.following_perplexity,
    }
    return Measurement(figures, {})


def unknown_words(folder: Path, streams: int) -> Measurement:
    """Perplexity of what follows an unknown word of the test split, read by its spelling and read as `<unk>`."""
    run = TextRun(folder)
    corpus = run.corpus()
    figures = {}
    for name, split in (("spelled", run.split(corpus, "test")), ("as <unk>", corpus.split("test"))):
        log_probs = run_log_probs(run, split, streams)
        after = log_probs[1:][np.asarray(split.tokens[:-1]) == run.vocabulary.unk]
        figures[f"after unknown words, {name}"] = perplexity(score_of(after).nll)
        figures[f"test perplexity, {name}"] = score_of(log_probs).perplexity
    return Measurement(figures, {})


RARE_WORDS = Measure(
    "rare-words",
    {
        "test perplexity": "perplexity, test",
        "parameters": "parameters",
        "rare words": f"perplexity of words seen fewer than {RARE} times",
        "after rare words": "perplexity after such words",
    },
    parameters_and_rare_words,
    {"below": RARE},
    minutes=0.5,
)

UNKNOWN_WORDS = Measure(
    "unknown-words",
    {
        "after unknown words, spelled": "perplexity after unknown words, read by their spelling",
        "after unknown words, as <unk>": "read as <unk>",
        "test perplexity, spelled": "perplexity, test, read by their spelling",
        "test perplexity, as <unk>": "read as <unk>",
    },
    unknown_words,
    {"streams": 10},
    minutes=0.5,
)


# TARGET
PAIRS = "blimp"
AGREEMENT_TERMS = ("anaphor_agreement", "determiner_noun_agreement", "subject_verb_agreement")
"""BLiMP's linguistics terms that are about agreement."""


def agreement(folder: Path, sentences: int) -> Measurement:
    """Accuracy by levels of embedding on fresh sentences, and the distance from the grammar."""
    run = TextRun(folder)
    found = examine(run, options_of(run, None), count=sentences)
    by_levels = {line.label: line for line in found.by_levels}
    figures = {f"accuracy, {label}": by_levels[label].accuracy.share for label in ("0 levels", "1 level", "2 levels")}
    figures["right number, 2 levels"] = by_levels["2 levels"].share
    figures["KL divergence"] = found.closeness.divergence
    return Measurement(figures, {"accuracy": [line.accuracy.share for line in found.by_levels[:4]]})


def minimal_pairs(folder: Path, pairs: str, order: int) -> Measurement:
    """Accuracy on minimal pairs, and that of a Kneser-Ney model of the same training text on the same pairs."""
    run = TextRun(folder)
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


def _on_agreement(rows: Sequence[PairAccuracy]) -> float:
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
