"""Measurements of runs, several at once, each kept in its file; and the figures that most claims compare.

These are from results.json, with the nats of the test text by block for tests by token.

A test by seed asks whether a difference recurs when the models are trained again, one by token whether the models that
were trained differ on more text of the same kind. Claims are about methods, so they are judged by seed.
"""

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

import elman
from elman.config.text import TextEvaluation
from elman.errors import UserError
from elman.evaluation.statistics import BLOCK, in_blocks
from elman.files import write_atomic
from elman.formats import read_json
from elman.jobs import Kept
from elman.jobs.launching import Tell
from elman.network.device import processor_name
from elman.study.claim import ClaimMeasure, Measurement
from elman.study.comparison import ByToken, Comparison, Ratio, Verdict, described
from elman.study.runner import Programme, Work, carry_out
from elman.study.runs import Machine, PlannedRun, Status, results_by_split
from elman.study.statistics import judge
from elman.study.store import Planned, PlannedComputation
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
    rows = results_by_split(folder)
    figures: dict[str, float] = {
        f"{split} {name}": value
        for split, row in rows.items()
        for name, key in FIGURES.items()
        if (value := getattr(row, key)) is not None
    }
    if (output := rows["test"].output) is not None:
        figures |= {one.name: one.value for one in output.measures}
        figures |= {f"{one.name}, baseline": one.value for one in output.baseline}
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
    log_probs = run.token_log_probs(split)
    return Measurement({}, {}) if log_probs is None else by_block(log_probs, block)


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


WORTH = 0.25  # minutes of measuring from which on other processes are used, which take seconds to begin


def measuring_minutes(planned: Planned, measure: ClaimMeasure) -> float:
    """About how long a measurement or computation will take at small scale; 0 where it needs no work."""
    if found_measurement(planned, measure) is not None:
        return 0.0
    return planned.computation.minutes if isinstance(planned, PlannedComputation) else measure.minutes


def measure_all(planned: Sequence[Planned], measure: ClaimMeasure, machine: Machine, tell: Tell) -> list[Measurement]:
    """The measurement of each, as `measured`; those that take time are jobs, as many at once as the launch permits.

    A measure that is `timed` is made in this process, one run after the other. `tell` is called with a line where one
    begins that takes time. Raises Stopped where SIGINT or SIGTERM arrived (what is finished is kept), UserError where a
    measurement failed.
    """
    paths = [kept_measurement(one, measure).path for one in planned]
    minutes = [measuring_minutes(one, measure) for one in planned]
    lasting = {path: one for path, one, needed in zip(paths, planned, minutes, strict=True) if needed}
    made = dict[Path, Measurement]()

    def work(path: Path) -> Work[Path]:
        one = lasting[path]
        return Work(
            path, one.name, path, f"{path.parent.name}-{path.stem}", (measure_one, one, measure, machine),
            is_open=lambda: path not in made, take=partial(made.__setitem__, path), begins=one.measuring,
        )  # fmt: skip

    if min(len(lasting), at_once(measure, machine)) > 1 and sum(minutes) > WORTH:
        carry_out(Programme(lasting), work, machine.launch, tell)
    for path, one in zip(paths, planned, strict=True):
        if path not in made:
            if path in lasting:
                tell(f"{one.name}: {one.measuring}")
            made[path] = measured(one, measure)
    return [made[path] for path in paths]


def at_once(measure: ClaimMeasure, machine: Machine) -> int:
    return 1 if measure.timed else machine.launch.at_once


def measure_one(planned: Planned, measure: ClaimMeasure, machine: Machine) -> Measurement:
    machine.prepare()
    return measured(planned, measure)


def found_measurement(planned: Planned, measure: ClaimMeasure) -> Measurement | None:
    """The measurement that needs no work: one that is kept for the same constants, or of a diverged training."""
    if isinstance(planned, PlannedRun) and planned.status is Status.DIVERGED and measure.diverged is not None:
        return Measurement(dict(measure.diverged), {})
    return kept_measurement(planned, measure).find()


def measured(planned: Planned, measure: ClaimMeasure) -> Measurement:
    """The measurement of a finished run or a computation, made now unless it is kept.

    It is kept unless one of its figures is not finite; where another process makes it, that is waited for. Raises
    UserError where the training diverged and the measure has no figures for that.
    """

    def make() -> Measurement:
        if isinstance(planned, PlannedComputation):
            made = planned.computation.function(planned.seed, planned.data)
        else:
            assert measure.function is not None, "runs are measured by a function"
            made = measure.function(planned.folder, **measure.constants)
        assert made.figures.keys() >= set(measure.metrics), "a measure gives the figures that it names"
        return made

    if (found := found_measurement(planned, measure)) is not None:
        return found
    if isinstance(planned, PlannedRun) and planned.status is Status.DIVERGED:
        raise UserError(f"{planned.name}: the training diverged and cannot be measured (see {planned.folder})")
    kept = kept_measurement(planned, measure)
    return kept.made(make, lambda made: all(map(math.isfinite, made.figures.values())))


def kept_measurement(planned: Planned, measure: ClaimMeasure) -> Kept[Measurement, Any]:
    """Where the measurement of a run or computation is kept; one without a figure that is measured now is not read.

    Nor is one of times that was made on another processor or by another version.
    """
    if isinstance(planned, PlannedRun):
        path, constants = planned.folder / f"measured-{measure.name}.json", dict(measure.constants)
        if measure.timed:
            constants |= {"elman": elman.__version__, "processor": processor_name(torch.device("cpu"))}
    else:
        path, constants = planned.path, planned.computation.constants
    return Kept(path, json.loads(json.dumps(constants)), partial(_load, measure.metrics), _save)


class _Measured(msgspec.Struct):
    figures: dict[str, Any]
    curves: dict[str, Any]
    constants: Any = msgspec.field(default_factory=dict)


def _load(metrics: Iterable[str], path: Path) -> tuple[Measurement, Any]:
    found: _Measured = read_json(path, _Measured)
    if missing := set(metrics) - found.figures.keys():
        raise KeyError(*missing)
    return Measurement(found.figures, found.curves), found.constants


def _save(path: Path, measurement: Measurement, constants: Any) -> None:
    write_atomic(path, json.dumps({"constants": constants, **measurement._asdict()}) + "\n")
