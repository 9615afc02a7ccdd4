"""What a reproduction needs: a training for every arm and seed, or a computation, and how far each is."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from elman.config.recipe import Recipe
from elman.evaluation.result import RESULTS
from elman.reproduce.arm import Computation


class Status(Enum):
    """The state of a run."""

    MISSING = "not trained"
    INTERRUPTED = "interrupted"
    DIVERGED = "diverged"
    DONE = "done"


UNTRAINED = Status.MISSING, Status.INTERRUPTED


@dataclass(frozen=True)
class PlannedRun:
    """One training: the recipe with its seed and data, and the label of the first arm that needs it, for messages.

    The folder is `runs/LABEL-DIGEST`; runs of equal digest are the same run, whatever the label.
    """

    label: str
    recipe: Recipe
    folder: Path

    @property
    def name(self) -> str:
        """In messages."""
        return f"{self.label}, seed {self.recipe.seed}"

    @property
    def status(self) -> Status:
        """From the files in its folder."""
        if (self.folder / RESULTS).is_file():
            return Status.DONE
        if (self.folder / "diverged.json").is_file():
            return Status.DIVERGED
        return Status.INTERRUPTED if (self.folder / "recipe.toml").is_file() else Status.MISSING


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
