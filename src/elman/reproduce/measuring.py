"""Measurement of finished runs, and computations, several at once; what is kept of each is its file."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from elman.errors import UserError
from elman.jobs import listening
from elman.jobs.launching import Crew, Tell
from elman.network.device import use_large_pages
from elman.reproduce.arm import Measurement
from elman.reproduce.claim import ClaimMeasure
from elman.reproduce.planned import Planned, PlannedComputation
from elman.reproduce.runs import found_measurement, kept_measurement, measured
from elman.reproduce.training import Machine, Stopped

WORTH = 0.25
"""Minutes of measuring from which on other processes are used, which take seconds to begin."""


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
    if min(len(lasting), at_once(measure, machine)) > 1 and sum(minutes) > WORTH:
        made = _side_by_side(lasting, measure, machine, tell)
    for path, one in zip(paths, planned, strict=True):
        if path not in made:
            if path in lasting:
                tell(_beginning(one))
            made[path] = measured(one, measure)
    return [made[path] for path in paths]


def at_once(measure: ClaimMeasure, machine: Machine) -> int:
    """How many measurements are made at once."""
    return 1 if measure.timed else machine.launch.at_once


def measure_one(planned: Planned, measure: ClaimMeasure, threads: int | None) -> Measurement:
    """The measurement of one run or computation in this process, as `measured`."""
    use_large_pages()
    if threads is not None:
        torch.set_num_threads(threads)
    return measured(planned, measure)


def _side_by_side(
    lasting: Mapping[Path, Planned], measure: ClaimMeasure, machine: Machine, tell: Tell
) -> dict[Path, Measurement]:
    """Measurements by the path where they are kept."""
    waiting, made = list(lasting), dict[Path, Measurement]()
    with listening() as stop, Crew[Path](machine.launch, tell, lambda path: lasting[path].name) as crew:
        while waiting or crew.running:
            while waiting and crew.room:
                path = waiting.pop(0)
                tell(_beginning(lasting[path]))
                name = f"{path.parent.name}-{path.stem}"
                crew.start(path, name, measure_one, lasting[path], measure, machine.threads)
            time.sleep(0.05)
            if stop.is_set():
                raise Stopped
            for path, outcome in crew.ended():
                if outcome.failure is not None:
                    reason = outcome.reason(path.with_suffix(".log"))
                    raise UserError(f"{lasting[path].name}: {reason}")
                made[path] = outcome.value
    return made


def _beginning(planned: Planned) -> str:
    return f"{planned.name}: {'computing' if isinstance(planned, PlannedComputation) else 'measuring'}"
