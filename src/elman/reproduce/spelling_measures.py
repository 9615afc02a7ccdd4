"""How runs that read spelling, and their twins, are measured."""

from pathlib import Path

import numpy as np

from elman.ensemble import run_log_probs
from elman.evaluation.figures import score_of
from elman.evaluation.frequency import by_frequency
from elman.reproduce.claim import Measure, Measurement
from elman.run import load
from elman.units import perplexity

RARE = 25
"""Words seen fewer times in training are rare."""


def parameters_and_rare_words(folder: Path, below: int) -> Measurement:
    """Perplexity of the test split, of its words seen fewer than `below` times and after them; number of parameters."""
    run = load(folder)
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
    run = load(folder)
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
