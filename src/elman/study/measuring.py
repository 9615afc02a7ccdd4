"""Measurement of finished runs, and computations, several at once; what is kept of each is its file."""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

import elman
from elman.errors import UserError
from elman.files import write_atomic
from elman.formats import read_json
from elman.jobs import Kept
from elman.jobs.launching import Tell
from elman.network.device import processor_name
from elman.study.claim import ClaimMeasure, Measurement
from elman.study.runner import Programme, carry_out
from elman.study.runs import Machine, Status
from elman.study.store import Planned, PlannedComputation

WORTH = 0.25
"""Minutes of measuring from which on other processes are used, which take seconds to begin."""


@dataclass
class Measuring:
    """The measurement of one run or computation as work; what was `made` need not be kept."""

    planned: Planned
    measure: ClaimMeasure
    made: Measurement | None = None

    @property
    def name(self) -> str:
        """In messages."""
        return self.planned.name

    @property
    def place(self) -> Path:
        """The file where it is kept."""
        return self.kept.path

    @property
    def kept(self) -> Kept[Measurement, Any]:
        """Where it is kept; one without a figure that is measured now is not read.

        Nor is one of times that was made on another processor or by another version.
        """
        planned, measure = self.planned, self.measure
        if isinstance(planned, PlannedComputation):
            path, constants = planned.path, planned.computation.constants
        else:
            path, constants = planned.folder / f"measured-{measure.name}.json", dict(measure.constants)
            if measure.timed:
                constants |= {"elman": elman.__version__, "processor": processor_name(torch.device("cpu"))}
        return Kept(path, json.loads(json.dumps(constants)), partial(_load, measure.metrics), _save)

    @property
    def _diverged(self) -> bool:
        return not isinstance(self.planned, PlannedComputation) and self.planned.status is Status.DIVERGED

    def find(self) -> Measurement | None:
        """What needs no work: a measurement kept for the same constants, or the figures of a diverged training."""
        if self._diverged and self.measure.diverged is not None:
            return Measurement(dict(self.measure.diverged), {})
        return self.kept.find()

    @property
    def minutes(self) -> float:
        """About how long it will take at small scale; 0 where it needs no work."""
        if self.find() is not None:
            return 0.0
        return (
            self.planned.computation.minutes if isinstance(self.planned, PlannedComputation) else self.measure.minutes
        )

    def make(self) -> Measurement:
        """The measurement, made now unless it is kept.

        It is kept unless one of its figures is not finite; where another process makes it, that is waited for. Raises
        UserError where the training diverged and the measure has no figures for that.
        """
        if (found := self.find()) is not None:
            return found
        if self._diverged:
            place = getattr(self.planned, "folder", "")
            raise UserError(f"{self.name}: the training diverged and cannot be measured (see {place})")
        return self.kept.made(self._measure, lambda made: all(map(math.isfinite, made.figures.values())))

    def _measure(self) -> Measurement:
        planned, measure = self.planned, self.measure
        if isinstance(planned, PlannedComputation):
            made = planned.computation.function(planned.seed, planned.data)
        else:
            assert measure.function is not None, "runs are measured by a function"
            made = measure.function(planned.folder, **measure.constants)
        assert made.figures.keys() >= set(measure.metrics), "a measure gives the figures that it names"
        return made

    # As work of `elman.study.runner`.

    is_taken = False

    @property
    def is_open(self) -> bool:
        """Whether it is still to be made."""
        return self.made is None

    def job(self, machine: Machine) -> tuple[str, Callable[..., Measurement], tuple[object, ...]]:
        """Name, function and arguments of its job."""
        return f"{self.place.parent.name}-{self.place.stem}", measure_one, (self, machine)

    def beginning(self) -> str:
        """What is told when it begins."""
        return "computing" if isinstance(self.planned, PlannedComputation) else "measuring"

    def take(self, value: Measurement) -> None:
        """Receive the measurement."""
        self.made = value

    def ending(self, _: float) -> str:
        """Its end is not told."""
        return ""


def measured(planned: Planned, measure: ClaimMeasure) -> Measurement:
    """The measurement of a finished run or a computation, as `Measuring.make`."""
    return Measuring(planned, measure).make()


def measure_one(work: Measuring, machine: Machine) -> Measurement:
    """A measurement in this process."""
    machine.prepare()
    return work.make()


def at_once(measure: ClaimMeasure, machine: Machine) -> int:
    """How many measurements are made at once: of times one."""
    return 1 if measure.timed else machine.launch.at_once


def measure_all(planned: Sequence[Planned], measure: ClaimMeasure, machine: Machine, tell: Tell) -> list[Measurement]:
    """The measurement of each, as `measured`; those that take time are jobs, as many at once as the launch permits.

    A measure that is `timed` is made in this process, one run after the other. `tell` is called with a line where one
    begins that takes time. Raises Stopped where SIGINT or SIGTERM arrived (what is finished is kept), UserError where a
    measurement failed.
    """
    all_work = [Measuring(one, measure) for one in planned]
    minutes = [one.minutes for one in all_work]
    lasting = {one.place: one for one, needed in zip(all_work, minutes, strict=True) if needed}
    if min(len(lasting), at_once(measure, machine)) > 1 and sum(minutes) > WORTH:
        carry_out(Programme(lasting.values()), machine, tell)
    made = {place: one.made for place, one in lasting.items() if one.made is not None}
    for one in all_work:
        if one.place not in made:
            if one.place in lasting:
                tell(f"{one.name}: {one.beginning()}")
            made[one.place] = one.make()
    return [made[one.place] for one in all_work]


def _load(metrics: Iterable[str], path: Path) -> tuple[Measurement, Any]:
    found = read_json(path)
    if missing := set(metrics) - found["figures"].keys():
        raise KeyError(*missing)
    return Measurement(found["figures"], found["curves"]), found.get("constants", {})


def _save(path: Path, measurement: Measurement, constants: Any) -> None:
    write_atomic(path, json.dumps({"constants": constants, **measurement._asdict()}) + "\n")
