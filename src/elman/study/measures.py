"""The figures that most claims compare, from results.json, and the nats of the test text by block for tests by token.

A test by seed asks whether a difference recurs when the models are trained again, one by token whether the models that
were trained differ on more text of the same kind. Claims are about methods, so they are judged by seed.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from elman.config.text import TextEvaluation
from elman.evaluation.statistics import BLOCK, in_blocks
from elman.kinds.pairs.evaluation import target_log_probs
from elman.kinds.pairs.run import PairRun
from elman.study.claim import ClaimMeasure, Measurement
from elman.study.comparison import ByToken, Comparison, Ratio, Verdict, described
from elman.study.runs import rows_by_split
from elman.study.statistics import judge
from elman.tasks.open import open_run
from elman.tasks.text.ensemble import run_log_probs
from elman.tasks.text.run import TextRun

FIGURES = {"perplexity": "perplexity", "bits per character": "bits_per_character", "nats per step": "nll"}
"""Figures of results.json, by their names here."""

NATS, TOKENS = "test nats by block", "test tokens"  # the curve of a measurement, and the figure beside it

METRIC = "test perplexity"
"""The metric whose ratios are judged by token: their logarithms are differences of nats per token."""

BLOCKS = {"block": BLOCK, "streams": 10}
"""The constants of a measure that keeps nats by block: tokens of a block, and columns in which a text is read.

Ten columns are much faster than one and have nearly the same figure.
"""


def results(folder: Path) -> Measurement:
    """The figures of each split in results.json; measures of the test output, and `MEASURE, baseline` beside them."""
    rows = rows_by_split(folder)
    figures = {
        f"{split} {name}": float(row[key])
        for split, row in rows.items()
        for name, key in FIGURES.items()
        if row.get(key) is not None
    }
    output = rows["test"].get("output", {})
    figures |= {one["name"]: float(one["value"]) for one in output.get("measures", [])}
    figures |= {f"{one['name']}, baseline": float(one["value"]) for one in output.get("baseline", [])}
    return Measurement(figures, {})


def by_split(name: str, figure: str) -> ClaimMeasure:
    metrics = {f"{split} {figure}": f"{figure}, {split}" for split in ("valid", "test")}
    return ClaimMeasure(name, metrics, results, diverged=dict.fromkeys(metrics, math.inf))


def with_test_text(folder: Path, block: int, streams: int) -> Measurement:
    found, text = results(folder), run_by_block(folder, block, streams)
    return Measurement(found.figures | text.figures, found.curves | text.curves)


PERPLEXITY = dataclasses.replace(
    by_split("perplexity", "perplexity"), function=with_test_text, constants=BLOCKS, minutes=0.1
)
BITS, STEPS = by_split("bits", "bits per character"), by_split("nats", "nats per step")


def run_by_block(folder: Path, block: int, streams: int, split: str = "test") -> Measurement:
    """The tokens of a text, or of the targets of pairs, and their summed nats by block; else nothing."""
    run = open_run(folder)
    if isinstance(run, TextRun):
        rules = TextEvaluation(streams=streams, skip_first=run.data.evaluation.skip_first)
        return by_block(run_log_probs(run, run.split(run.corpus(), split), rules), block)
    if isinstance(run, PairRun):
        corpus = run.corpus()
        return by_block(np.concatenate(target_log_probs(run.model, corpus, corpus.split(split))), block)
    return Measurement({}, {})


def by_block(log_probs: np.ndarray, block: int) -> Measurement:
    """Log-probabilities (nats) of tokens as the number of tokens and the nats by block; NaN is not counted."""
    nats = -log_probs[~np.isnan(log_probs)].astype(np.float64)
    return Measurement({TOKENS: float(len(nats))}, {NATS: [float(part.sum()) for part in in_blocks(nats, block)]})


def with_tokens(verdict: Verdict, comparison: Comparison, measured: Mapping[str, Sequence[Measurement]]) -> Verdict:
    if not isinstance(comparison, Ratio) or comparison.metric != METRIC or comparison.b_metric is not None:
        return verdict
    found = compare(comparison, measured[comparison.a], measured[comparison.b])
    if found is None:
        return verdict
    text = f"by token ({found.tokens:,} in {found.blocks:,} blocks): {described(found.judgement)}"
    return msgspec.structs.replace(verdict, figures=f"{verdict.figures}; {text}", by_token=found)


def compare(ratio: Ratio, a: Sequence[Measurement], b: Sequence[Measurement]) -> ByToken | None:
    """The ratio of two arms, each the mean of its seeds, judged over blocks as `elman compare` does.

    None where a run has no nats, as one that diverged, or not as many tokens as the others.
    """
    sizes = {(one.figures.get(TOKENS), len(one.curves.get(NATS, ()))) for one in (*a, *b)}
    if len(sizes) > 1 or (size := sizes.pop())[0] is None:
        return None
    tokens, blocks = int(size[0]), size[1]
    lengths = [len(part) for part in np.array_split(np.empty(tokens), blocks)]
    mean_a, mean_b = (np.mean([one.curves[NATS] for one in seeds], axis=0) for seeds in (a, b))
    differences = (mean_a - mean_b) / lengths
    return ByToken(tokens, blocks, judge(differences.tolist(), *ratio.interval))
