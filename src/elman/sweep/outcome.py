"""What a sweep has found: the validation figures of every setting, the best one, and paired tests against it."""

import math
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from elman.errors import notice
from elman.evaluation.paired import holm
from elman.files import sha256_file
from elman.reproduce import tokens
from elman.reproduce.arm import Measurement
from elman.reproduce.claim import ClaimMeasure
from elman.reproduce.comparison import ByToken, Ratio
from elman.reproduce.planned import UNTRAINED, PlannedRun, Status, rows_by_split
from elman.reproduce.runs import measured
from elman.reproduce.statistics import Judgement, judge
from elman.sweep.question import Sweep
from elman.sweep.tried import Tried
from elman.tasks.run import data_facts

State = Literal["done", "diverged", "failed", "pruned", "unfinished"]

VALID = ClaimMeasure("valid-text", {}, partial(tokens.run_by_block, split="valid"), tokens.BLOCKS, diverged={})
"""The nats of the validation text by block, kept beside every run that is compared."""


class Paired(msgspec.Struct, frozen=True):
    """The best setting against another one: differences of nats, negative where the best is lower.

    `p_holm` is the p-value by seed, adjusted for the number of settings; None with one seed.
    """

    by_seed: Judgement
    by_token: ByToken | None = None
    p_holm: float | None = None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A setting.

    By seed, `states` holds how far each run is, and `nll` nats per token (music, series: per step) of the validation
    split: infinite where the training diverged, None where it is not finished; `mean` is that of all seeds, None while
    one is missing. JSON has null for both, so that `states` distinguishes them there.
    """

    label: str
    settings: dict[str, str]
    state: State
    seeds: list[int]
    states: list[State]
    nll: list[float | None]
    mean: float | None
    folders: list[str]
    failures: dict[int, str] = {}
    test: Paired | None = None


def validation_nll(run: PlannedRun) -> float:
    """Nats per token of the best model on the validation split; infinite where the training diverged.

    Nothing else of the results is read: settings are chosen without the test split.
    """
    return math.inf if run.status is Status.DIVERGED else run.valid_nll


def row_of(sweep: Sweep, tried: Tried) -> Row:
    """What is known of a setting."""
    nll = [None if run.status in UNTRAINED else validation_nll(run) for run in tried.runs]
    states = [_state(tried, run, value) for run, value in zip(tried.runs, nll, strict=True)]
    known = [value for value in nll if value is not None]
    state: State = "unfinished"
    if tried.pruned:
        state = "pruned"
    elif len(known) == len(nll):
        state = "diverged" if "diverged" in states else "done"
    elif tried.failures:
        state = "failed"
    return Row(
        label=sweep.label(tried.setting),
        settings=dict(tried.setting.values),
        state=state,
        seeds=[run.recipe.seed for run in tried.runs],
        states=states,
        nll=nll,
        mean=statistics.fmean(known) if state in ("done", "diverged") else None,
        folders=[str(run.folder) for run in tried.runs],
        failures=tried.failures,
    )


def _state(tried: Tried, run: PlannedRun, nll: float | None) -> State:
    """How far a run of a setting is, given its validation figure."""
    if nll is not None:
        return "done" if math.isfinite(nll) else "diverged"
    if run.recipe.seed in tried.failures:
        return "failed"
    return "pruned" if tried.pruned else "unfinished"


def ranked(sweep: Sweep, tried: Sequence[Tried]) -> list[tuple[Row, Tried]]:
    """The settings, the lowest mean first; those without one at the end."""
    rows = [(row_of(sweep, one), one) for one in tried]
    return sorted(rows, key=lambda pair: (pair[0].mean is None, pair[0].mean or 0.0))


def with_tests(rows: Sequence[tuple[Row, Tried]], advance: Callable[[int, int], None]) -> list[Row]:
    """The rows with the tests of the first, the best one, against every other that is finished.

    They are made where all runs read the same text with the same vocabulary; by token for text and pairs.
    """
    finished = [pair for pair in rows if pair[0].state == "done"]
    if len(finished) < 2:
        return [row for row, _ in rows]
    if not are_comparable([run for _, one in finished for run in one.runs]):
        notice("settings read other texts or vocabularies, so that their losses do not measure the same; no tests")
        return [row for row, _ in rows]
    texts = list[list[Measurement]]()
    for place, (_, one) in enumerate(finished):
        advance(place, len(finished))
        texts.append([measured(run, VALID) for run in one.runs])
    best, *others = finished
    tests = [_test(best[0], row, texts[0], text) for (row, _), text in zip(others, texts[1:], strict=True)]
    known = [test.by_seed.p_value for test in tests if not math.isnan(test.by_seed.p_value)]
    if len(known) == len(tests):
        adjusted = holm(known)
        tests = [msgspec.structs.replace(test, p_holm=p) for test, p in zip(tests, adjusted, strict=True)]
    found = {row.label: test for (row, _), test in zip(others, tests, strict=True)}
    return [msgspec.structs.replace(row, test=found.get(row.label)) for row, _ in rows]


def _test(best: Row, other: Row, best_text: Sequence[Measurement], text: Sequence[Measurement]) -> Paired:
    pairs = zip(best.nll, other.nll, strict=True)
    differences = [a - b for a, b in pairs if a is not None and b is not None]
    lower = Ratio("", tokens.METRIC, best.label, other.label, high=1.0)
    return Paired(judge(differences, high=0.0), tokens.compare(lower, best_text, text))


def are_comparable(runs: Sequence[PlannedRun]) -> bool:
    """Whether all runs predict the same text with the same vocabulary, so that their nats measure the same."""
    return len({_predicted(run.folder) for run in runs}) == 1


def _predicted(folder: Path) -> tuple[str, ...]:
    vocabularies = sorted(folder.glob("*vocabulary*.tsv"))
    return str(data_facts(folder)["digest"]), *map(sha256_file, vocabularies)


def held_out(run: PlannedRun) -> float:
    """Nats per token of a run on the test split, shown for the best setting alone, after it has been chosen."""
    return float(rows_by_split(run.folder)["test"]["nll"])
