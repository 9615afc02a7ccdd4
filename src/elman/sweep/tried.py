"""A setting of a sweep with its runs."""

from dataclasses import dataclass, field
from pathlib import Path

from elman.reproduce.planned import PlannedRun
from elman.sweep.space import Setting


@dataclass
class Tried:
    """A setting with its runs; `failures` are those of runs that failed for the last time, by seed."""

    setting: Setting
    runs: list[PlannedRun]
    failures: dict[int, str] = field(default_factory=dict)
    pruned: bool = False

    @property
    def folders(self) -> set[Path]:
        """Of the runs."""
        return {run.folder for run in self.runs}

    def fail(self, run: PlannedRun, failure: str) -> None:
        """A run failed for the last time."""
        self.failures[run.recipe.seed] = failure
