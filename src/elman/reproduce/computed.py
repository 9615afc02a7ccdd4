"""Figures are made once and kept with their constants; those that need no trained run are computed."""

import json
import math
from collections.abc import Callable, Collection, Mapping
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
        metrics: the figures that it is computed for.
        path: where its result is kept; remove the file, and it is computed anew.

    """

    label: str
    seed: int
    data: str | None
    computation: Computation
    metrics: tuple[str, ...]
    path: Path

    @property
    def name(self) -> str:
        """In messages."""
        return f"{self.label}, seed {self.seed}"

    @property
    def done(self) -> bool:
        """Whether its result is there, made with the same constants."""
        return _read(self.path, self.computation.constants, self.metrics) is not None

    def result(self) -> Measurement:
        """The result, computed if it is not there."""
        constants = self.computation.constants
        return kept_or_made(self.path, constants, self.metrics, lambda: self.computation.function(self.seed, self.data))


def kept_or_made(
    path: Path, constants: Mapping[str, Any], metrics: Collection[str], make: Callable[[], Measurement]
) -> Measurement:
    """The measurement that `path` holds if it was made with these constants and has these figures, else a new one.

    The new one is kept, with its constants, unless a figure of it is not finite.
    """
    kept = _read(path, constants, metrics)
    if kept is not None:
        return kept
    made = make()
    if all(map(math.isfinite, made.figures.values())):
        write_atomic(path, json.dumps({"constants": constants, **made._asdict()}) + "\n")
    return made


def _read(path: Path, constants: Mapping[str, Any], metrics: Collection[str]) -> Measurement | None:
    if not path.is_file():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    fits = found.get("constants", {}) == json.loads(json.dumps(constants)) and found["figures"].keys() >= set(metrics)
    return Measurement(found["figures"], found["curves"]) if fits else None
