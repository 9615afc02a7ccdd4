"""Figures that need no trained run: computed once for each arm and seed, and kept."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
        kept = read_measurement(self.path, {})
        if kept is not None:
            return kept
        measurement = self.computation.function(self.seed, self.data)
        keep_measurement(self.path, measurement, {})
        return measurement


def read_measurement(path: Path, constants: Mapping[str, Any]) -> Measurement | None:
    """What `keep_measurement` wrote with the same constants; None: nothing, or with others."""
    if not path.is_file():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    if found.get("constants", {}) != json.loads(json.dumps(constants)):
        return None
    return Measurement(found["figures"], found["curves"])


def keep_measurement(path: Path, measurement: Measurement, constants: Mapping[str, Any]) -> None:
    """Write a measurement and the constants it was made with, unless a figure of it is not finite."""
    if all(map(math.isfinite, measurement.figures.values())):
        write_atomic(path, json.dumps({"constants": constants, **measurement._asdict()}) + "\n")
