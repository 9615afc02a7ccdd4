"""What a sweep has found: the validation figures of every setting, the best one, and paired tests against it."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from elman.config.record import Reporting
from elman.errors import notice
from elman.evaluation.paired import holm
from elman.files import sha256_file
from elman.study import measures
from elman.study.claim import ClaimMeasure, Measurement
from elman.study.comparison import ByToken, Ratio
from elman.study.measures import measured
from elman.study.runs import PlannedRun
from elman.study.statistics import Judgement, judge, spread_text
from elman.study.sweep.question import Sweep
from elman.study.sweep.space import Setting, short_names
from elman.tasks.run import data_facts

State = Literal["done", "diverged", "failed", "pruned", "unfinished"]

VALID = ClaimMeasure("valid-text", {}, partial(measures.run_by_block, split="valid"), measures.BLOCKS, diverged={})
"""The nats of the validation text by block, kept beside every run that is compared."""


@dataclass
class Tried:
    """A setting with its runs; `failures`: of runs that failed for the last time, by seed."""

    setting: Setting
    runs: list[PlannedRun]
    failures: dict[int, str] = field(default_factory=dict)
    pruned: bool = False

    @property
    def folders(self) -> set[Path]:
        return {run.folder for run in self.runs}

    def state_of(self, run: PlannedRun, nll: float | None) -> State:
        """How far a run is, given its validation figure."""
        if nll is not None:
            return "done" if math.isfinite(nll) else "diverged"
        if run.recipe.seed in self.failures:
            return "failed"
        return "pruned" if self.pruned else "unfinished"


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
    split: infinite where the training diverged, None where it is not finished; `mean`: over all seeds, None while
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

    @property
    def known(self) -> list[float]:
        return [value for value in self.nll if value is not None]


def ranked(sweep: Sweep, tried: Sequence[Tried]) -> list[tuple[Row, Tried]]:
    """The settings, the lowest mean first; those without one at the end."""
    rows = list[tuple[Row, Tried]]()
    for one in tried:
        nll = [None if run.is_open else run.valid_nll for run in one.runs]
        states, known = list(map(one.state_of, one.runs, nll)), [value for value in nll if value is not None]
        state: State = "failed" if one.failures else "unfinished"
        if one.pruned:
            state = "pruned"
        elif len(known) == len(nll):
            state = "diverged" if "diverged" in states else "done"
        row = Row(
            label=sweep.label(one.setting), settings=dict(one.setting.values), state=state,
            seeds=[run.recipe.seed for run in one.runs], states=states, nll=nll,
            mean=statistics.fmean(known) if state in ("done", "diverged") else None,
            folders=[str(run.folder) for run in one.runs], failures=one.failures,
        )  # fmt: skip
        rows.append((row, one))
    return sorted(rows, key=lambda pair: (pair[0].mean is None, pair[0].mean or 0.0))


def with_tests(rows: Sequence[tuple[Row, Tried]], advance: Callable[[int, int], None]) -> list[Row]:
    """The rows with the tests of the first, the best one, against every other that is finished.

    They are made where all runs read the same text with the same vocabulary; by token for text and pairs.
    """
    finished = [pair for pair in rows if pair[0].state == "done"]
    if len(finished) < 2:
        return [row for row, _ in rows]
    if len({_predicted(run.folder) for _, one in finished for run in one.runs}) > 1:
        notice("settings read other texts or vocabularies, so that their losses do not measure the same; no tests")
        return [row for row, _ in rows]
    texts = list[list[Measurement]]()
    for place, (_, one) in enumerate(finished):
        advance(place, len(finished))
        texts.append([measured(run, VALID) for run in one.runs])
    best, found = finished[0][0], dict[str, Paired]()
    for (row, _), text in zip(finished[1:], texts[1:], strict=True):
        differences = [a - b for a, b in zip(best.known, row.known, strict=True)]
        lower = Ratio("", measures.METRIC, best.label, row.label, high=1.0)
        found[row.label] = Paired(judge(differences, high=0.0), measures.compare(lower, texts[0], text))
    known = [test.by_seed.p_value for test in found.values()]
    if not any(map(math.isnan, known)):
        pairs = zip(found.items(), holm(known), strict=True)
        found = {label: msgspec.structs.replace(test, p_holm=p) for (label, test), p in pairs}
    return [msgspec.structs.replace(row, test=found.get(row.label)) for row, _ in rows]


def _predicted(folder: Path) -> tuple[str, ...]:
    """Equal where runs predict the same text with the same vocabulary, so that their nats measure the same."""
    return str(data_facts(folder)["digest"]), *map(sha256_file, sorted(folder.glob("*vocabulary*.tsv")))


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep has found so far.

    `rows` begin with the best; `best` is that row, None while no setting is finished; `best_test` holds its nats on the
    test split by seed, None unless the sweep is over.
    """

    rows: list[Row]
    best: Row | None
    best_test: list[float] | None
    scale: Reporting

    @property
    def failed(self) -> int:
        """Runs that failed for the last time; of a failed trial of Optuna the one that ended it."""
        return sum(len(row.failures) for row in self.rows)

    @property
    def is_tested(self) -> bool:
        return any(row.test is not None for row in self.rows)

    def line(self) -> str:
        if self.best is None:
            diverged = sum(row.state == "diverged" for row in self.rows)
            return f"No setting has a finite loss; {diverged} diverged." if diverged else "No setting is finished."
        count = sum(row.mean is not None for row in self.rows)
        value = reported(self.scale, self.best.nll)
        return f"Best of {count}: {self.best.label} with a validation {self.scale.name} of {value}."

    def header(self) -> list[str]:
        """Of the table: a column for every key that is varied, the figure, the tests."""
        names = [*short_names([*self.rows[0].settings]).values()] if self.rows else []
        ratio = "ratio" if self.scale.in_perplexity else "difference"
        tests = [ratio, "95 % interval", "p", "p, Holm", "p by token"] if self.is_tested else []
        return [*(names or ["setting"]), "seeds", f"valid {self.scale.name}", *tests, "state"]

    def table(self) -> list[list[str]]:
        """A row for each setting: mean ± sample standard deviation over seeds, and the tests against the best."""
        lines = list[list[str]]()
        for row in self.rows:
            known, values = len(row.known), [*row.settings.values()] or [row.label]
            done = f"{known} of {len(row.seeds)}" if known < len(row.seeds) else str(known)
            tests = _tests(self.scale, row.test) if self.is_tested else []
            lines.append([*values, done, reported(self.scale, row.nll), *tests, row.state])
        return lines

    def facts(self) -> dict[str, Any]:
        best = None if self.best is None else {"label": self.best.label, "settings": self.best.settings}
        return {
            "figure": f"nats per {self.scale.unit}, validation", "rows": msgspec.to_builtins(self.rows, str_keys=True),
            "best": best, "best_test_nll": self.best_test, "failed": self.failed,
        }  # fmt: skip


def reported(scale: Reporting, nll: Sequence[float | None]) -> str:
    """Mean ± sample standard deviation of the reported loss over the seeds that are known; `diverged` where one did."""
    known = [value for value in nll if value is not None]
    if not all(map(math.isfinite, known)):
        return "diverged"
    return spread_text([scale.of(value) for value in known]) if known else ""


def _tests(scale: Reporting, test: Paired | None) -> list[str]:
    """The ratio of perplexities of the best and this setting, or the difference of nats; its interval, and p-values.

    Densities have nats that may be negative, and exp of them is no perplexity.
    """
    if test is None:
        return [""] * 5
    judged, by_token = test.by_seed, None if test.by_token is None else test.by_token.judgement.p_value
    mean, low, high = (
        f"{math.exp(each):.3f}" if scale.in_perplexity and math.isfinite(each) else f"{each:.4f}"
        for each in (judged.mean, judged.low, judged.high)
    )
    by_seed = None if math.isnan(judged.p_value) else judged.p_value
    p_values = ("" if p is None else f"{p:.2g}" for p in (by_seed, test.p_holm, by_token))
    return [mean, f"{low} to {high}" if math.isfinite(judged.low) else "", *p_values]
