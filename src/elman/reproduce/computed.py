"""Figures that need no trained run: computed once for each arm and seed, and kept."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

from elman.files import write_atomic
from elman.reproduce.claim import Computation, Measurement


@dataclass(frozen=True)
class PlannedComputation:
    """One computation.

    Attributes:
        label: of the arm.
        seed, data: what it is computed from; --data, or None.
        computation: the function.
        path: where its result is kept; remove the file, and it is computed anew.

    """

    label: str
    seed: int
    data: str | None
    computation: Computation
    path: Path

    @property
    def name(self) -> str:
        """In messages."""
        return f"{self.label}, seed {self.seed}"

    @property
    def done(self) -> bool:
        """Whether its result is there."""
        return self.path.is_file()

    def result(self) -> Measurement:
        """The result, computed if it is not there; one that is not finite is not kept."""
        if self.done:
            return read_measurement(self.path)
        measurement = self.computation.function(self.seed, self.data)
        keep_measurement(self.path, measurement)
        return measurement


def read_measurement(path: Path) -> Measurement:
    """What `keep_measurement` wrote."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return Measurement(found["figures"], found["curves"])


def keep_measurement(path: Path, measurement: Measurement) -> None:
    """Write a measurement, unless a figure of it is not finite."""
    if all(map(math.isfinite, measurement.figures.values())):
        write_atomic(path, json.dumps(measurement._asdict()) + "\n")
