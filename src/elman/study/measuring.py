"""Measurement of finished runs, and computations, several at once; what is kept of each is its file."""

import json
import math
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import torch

import elman
from elman.errors import UserError
from elman.files import write_atomic
from elman.formats import read_json
from elman.jobs import Kept
from elman.jobs.launching import Tell
from elman.network.device import processor_name
from elman.study.claim import ClaimMeasure, Measurement
from elman.study.runner import Programme, Work, carry_out
from elman.study.runs import Machine, PlannedRun, Status
from elman.study.store import Planned, PlannedComputation

WORTH = 0.25  # minutes of measuring from which on other processes are used, which take seconds to begin


def measuring_minutes(planned: Planned, measure: ClaimMeasure) -> float:
    """About how long a measurement or computation will take at small scale; 0 where it needs no work."""
    if found_measurement(planned, measure) is not None:
        return 0.0
    return planned.computation.minutes if isinstance(planned, PlannedComputation) else measure.minutes


def measure_all(planned: Sequence[Planned], measure: ClaimMeasure, machine: Machine, tell: Tell) -> list[Measurement]:
    """The measurement of each, as `measured`; those that take time are jobs, as many at once as the launch permits.

    A measure that is `timed` is made in this process, one run after the other. `tell` is called with a line where one
    begins that takes time. Raises Stopped where SIGINT or SIGTERM arrived (what is finished is kept), UserError where a
    measurement failed.
    """
    paths = [kept_measurement(one, measure).path for one in planned]
    minutes = [measuring_minutes(one, measure) for one in planned]
    lasting = {path: one for path, one, needed in zip(paths, planned, minutes, strict=True) if needed}
    made = dict[Path, Measurement]()

    def work(path: Path) -> Work[Path]:
        one = lasting[path]
        return Work(
            path, one.name, path, f"{path.parent.name}-{path.stem}", (measure_one, one, measure, machine),
            is_open=lambda: path not in made, take=partial(made.__setitem__, path), begins=one.measuring,
        )  # fmt: skip

    if min(len(lasting), at_once(measure, machine)) > 1 and sum(minutes) > WORTH:
        carry_out(Programme(lasting), work, machine.launch, tell)
    for path, one in zip(paths, planned, strict=True):
        if path not in made:
            if path in lasting:
                tell(f"{one.name}: {one.measuring}")
            made[path] = measured(one, measure)
    return [made[path] for path in paths]


def at_once(measure: ClaimMeasure, machine: Machine) -> int:
    return 1 if measure.timed else machine.launch.at_once


def measure_one(planned: Planned, measure: ClaimMeasure, machine: Machine) -> Measurement:
    machine.prepare()
    return measured(planned, measure)


def found_measurement(planned: Planned, measure: ClaimMeasure) -> Measurement | None:
    """The measurement that needs no work: one that is kept for the same constants, or that of a diverged training."""
    if isinstance(planned, PlannedRun) and planned.status is Status.DIVERGED and measure.diverged is not None:
        return Measurement(dict(measure.diverged), {})
    return kept_measurement(planned, measure).find()


def measured(planned: Planned, measure: ClaimMeasure) -> Measurement:
    """The measurement of a finished run or a computation, made now unless it is kept.

    It is kept unless one of its figures is not finite; where another process makes it, that is waited for. Raises
    UserError where the training diverged and the measure has no figures for that.
    """

    def make() -> Measurement:
        if isinstance(planned, PlannedComputation):
            made = planned.computation.function(planned.seed, planned.data)
        else:
            assert measure.function is not None, "runs are measured by a function"
            made = measure.function(planned.folder, **measure.constants)
        assert made.figures.keys() >= set(measure.metrics), "a measure gives the figures that it names"
        return made

    if (found := found_measurement(planned, measure)) is not None:
        return found
    if isinstance(planned, PlannedRun) and planned.status is Status.DIVERGED:
        raise UserError(f"{planned.name}: the training diverged and cannot be measured (see {planned.folder})")
    kept = kept_measurement(planned, measure)
    return kept.made(make, lambda made: all(map(math.isfinite, made.figures.values())))


def kept_measurement(planned: Planned, measure: ClaimMeasure) -> Kept[Measurement, Any]:
    """Where the measurement of a run or computation is kept; one without a figure that is measured now is not read.

    Nor is one of times that was made on another processor or by another version.
    """
    if isinstance(planned, PlannedRun):
        path, constants = planned.folder / f"measured-{measure.name}.json", dict(measure.constants)
        if measure.timed:
            constants |= {"elman": elman.__version__, "processor": processor_name(torch.device("cpu"))}
    else:
        path, constants = planned.path, planned.computation.constants
    return Kept(path, json.loads(json.dumps(constants)), partial(_load, measure.metrics), _save)


class _Measured(msgspec.Struct):
    figures: dict[str, Any]
    curves: dict[str, Any]
    constants: Any = msgspec.field(default_factory=dict)


def _load(metrics: Iterable[str], path: Path) -> tuple[Measurement, Any]:
    found: _Measured = read_json(path, _Measured)
    if missing := set(metrics) - found.figures.keys():
        raise KeyError(*missing)
    return Measurement(found.figures, found.curves), found.constants


def _save(path: Path, measurement: Measurement, constants: Any) -> None:
    write_atomic(path, json.dumps({"constants": constants, **measurement._asdict()}) + "\n")
