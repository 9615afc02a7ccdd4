"""What a reproduction needs: a training for every arm and seed, or a computation, and how far each is."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from elman.config.recipe import Recipe
from elman.evaluation.result import RESULTS, with_infinite
from elman.formats import read_json
from elman.report.metrics import Metrics, read_metrics
from elman.reproduce.arm import Computation


class Status(Enum):
    """The state of a run."""

    MISSING = "not trained"
    INTERRUPTED = "interrupted"
    DIVERGED = "diverged"
    DONE = "done"


def rows_by_split(folder: Path) -> dict[str, dict[str, Any]]:
    """The rows of results.json that are not of an adapting model, by their split; a loss that is null is infinite."""
    rows = [row for row in read_json(folder / RESULTS) if row.get("method", "static") == "static"]
    return {row["split"]: with_infinite(row) for row in rows}


UNTRAINED = Status.MISSING, Status.INTERRUPTED

TRIED = "tried.json"
"""What a trial of a grid leaves in the place of results: the lowest validation loss of its training."""


@dataclass(frozen=True)
class PlannedRun:
    """One training: the recipe with its seed and data, and the label of the first arm that needs it, for messages.

    The folder is `runs/LABEL-DIGEST`; runs of equal digest are the same run, whatever the label. A `trial` only chooses
    settings: it is judged by its validations while it trains, and not evaluated after them.
    """

    label: str
    recipe: Recipe
    folder: Path
    trial: bool = False

    @property
    def name(self) -> str:
        """In messages."""
        return f"{self.label}, seed {self.recipe.seed}"

    @property
    def status(self) -> Status:
        """From the files in its folder."""
        if (self.folder / RESULTS).is_file() or (self.trial and (self.folder / TRIED).is_file()):
            return Status.DONE
        if (self.folder / "diverged.json").is_file():
            return Status.DIVERGED
        return Status.INTERRUPTED if (self.folder / "recipe.toml").is_file() else Status.MISSING

    @property
    def valid_nll(self) -> float:
        """Nats per token of the validation text; raises where the run is not done.

        Trials of versions that evaluated them have results instead.
        """
        if self.trial and (self.folder / TRIED).is_file():
            return float(read_json(self.folder / TRIED)["valid"])
        return float(rows_by_split(self.folder)["valid"]["nll"])

    @property
    def metrics(self) -> Metrics | None:
        """The log of its training, None before it."""
        path = self.folder / "metrics.jsonl"
        return read_metrics(path) if path.is_file() else None


@dataclass(frozen=True)
class PlannedComputation:
    """One computation of an arm, its arguments (`data` is --data or None), and where its result is kept."""

    label: str
    seed: int
    data: str | None
    computation: Computation
    path: Path

    @property
    def name(self) -> str:
        """In messages."""
        return f"{self.label}, seed {self.seed}"


Planned = PlannedRun | PlannedComputation
"""The run or computation of an arm for one seed."""
