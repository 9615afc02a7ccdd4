"""The result of a sweep: its table, the best recipe, its record as JSON."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from elman.config.data import reporting_of
from elman.config.record import Reporting
from elman.config.toml import dump_recipe
from elman.files import write_atomic
from elman.reproduce.planned import PlannedRun
from elman.reproduce.statistics import spread_text
from elman.sweep.outcome import Row, held_out
from elman.sweep.question import Sweep
from elman.sweep.space import short_names

BEST = "best.toml"
"""In the folder of a sweep: the recipe of the best setting."""


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

    def line(self) -> str:
        """The result in a sentence."""
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
        tests = [ratio, "95 % interval", "p", "p, Holm", "p by token"] if self._is_tested else []
        return [*(names or ["setting"]), "seeds", f"valid {self.scale.name}", *tests, "state"]

    def table(self) -> list[list[str]]:
        """A row for each setting: mean ± sample standard deviation over seeds, and the tests against the best."""
        return [self._line(row) for row in self.rows]

    @property
    def _is_tested(self) -> bool:
        return any(row.test is not None for row in self.rows)

    def _line(self, row: Row) -> list[str]:
        known = [value for value in row.nll if value is not None]
        tests = _tests(self.scale, row) if self._is_tested else []
        done = f"{len(known)} of {len(row.seeds)}" if len(known) < len(row.seeds) else str(len(known))
        values = [*row.settings.values()] or [row.label]
        return [*values, done, reported(self.scale, row.nll), *tests, row.state]

    def facts(self) -> dict[str, Any]:
        """As JSON."""
        best = None if self.best is None else {"label": self.best.label, "settings": self.best.settings}
        return {
            "figure": f"nats per {self.scale.unit}, validation",
            "rows": msgspec.to_builtins(self.rows, str_keys=True),
            "best": best,
            "best_test_nll": self.best_test,
            "failed": self.failed,
        }


def found_of(rows: Sequence[Row], runs: dict[str, list[PlannedRun]], kind: str, *, over: bool) -> Found:
    """What is found, by ranked rows and their runs by label; where the sweep is over, the best is also tested."""
    best = rows[0] if rows and rows[0].mean is not None and math.isfinite(rows[0].mean) else None
    test = [held_out(run) for run in runs[best.label]] if over and best is not None else None
    return Found(rows=list(rows), best=best, best_test=test, scale=reporting_of(kind))


def write_best(sweep: Sweep, runs: Sequence[PlannedRun]) -> Path:
    """Write the recipe of the best setting, with its first seed and its data, for `elman train`."""
    path = sweep.out / BEST
    write_atomic(path, dump_recipe(runs[0].recipe))
    return path


def reported(scale: Reporting, nll: Sequence[float | None]) -> str:
    """Mean ± sample standard deviation of the reported loss over the seeds that are known; `diverged` where one did."""
    known = [value for value in nll if value is not None]
    if not all(map(math.isfinite, known)):
        return "diverged"
    return spread_text([scale.of(value) for value in known]) if known else ""


def _tests(scale: Reporting, row: Row) -> list[str]:
    """The ratio of perplexities of the best and this setting, or the difference of nats; its interval, and p-values.

    Densities have nats that may be negative, and exp of them is no perplexity.
    """
    if row.test is None:
        return [""] * 5
    judged, words = row.test.by_seed, row.test.by_token

    def shown(difference: float) -> str:
        return f"{math.exp(difference):.3f}" if scale.in_perplexity else f"{difference:.4f}"

    interval = f"{shown(judged.low)} to {shown(judged.high)}" if math.isfinite(judged.low) else ""
    by_seed = "" if math.isnan(judged.p_value) else f"{judged.p_value:.2g}"
    adjusted = "" if row.test.p_holm is None else f"{row.test.p_holm:.2g}"
    by_token = "" if words is None else f"{words.judgement.p_value:.2g}"
    return [shown(judged.mean), interval, by_seed, adjusted, by_token]
