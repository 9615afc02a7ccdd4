"""A reproduction of a claim, from its plan to its verdict."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from elman.jobs.launching import Tell
from elman.reproduce.arm import Measurement, Scale
from elman.reproduce.claim import Claim
from elman.reproduce.comparison import Verdict, indication, together
from elman.reproduce.measuring import measure_all
from elman.reproduce.page import write_claim_page
from elman.reproduce.plan import Plan
from elman.reproduce.record import ClaimRecord, record, write_record
from elman.reproduce.runs import Store
from elman.reproduce.tokens import with_tokens
from elman.reproduce.training import Machine, train_all


@dataclass(frozen=True)
class Reproduction:
    """The measurements, the verdicts on each comparison and on the claim, the record of all, and the page."""

    plan: Plan
    measurements: dict[str, list[Measurement]]
    verdicts: list[Verdict]
    verdict: Verdict
    record: ClaimRecord
    page: Path

    @property
    def line(self) -> str:
        """The last line of the command."""
        return self.record.line


def conduct(planned: Plan, store: Store, machine: Machine, tell: Tell) -> Reproduction:
    """Train what is missing, measure, judge, and write NAME.json and NAME.html into the folder of the store.

    Raises Stopped where a signal arrived (the same command continues), UserError where a training failed.
    """
    claim = planned.claim
    (planned,) = train_together([planned], store, machine, tell)
    found = iter(measure_all([one for each in planned.runs.values() for one in each], claim.measure, machine, tell))
    measurements = {label: list(islice(found, len(each))) for label, each in planned.runs.items()}
    verdicts = judged(claim, planned.scale, measurements)
    verdict, page = together(claim.sentence, verdicts), store.out / f"{planned.name}.html"
    made = record(planned, measurements, verdicts, verdict, page)
    write_claim_page(page, planned, made, measurements, verdicts)
    write_record(store.out / f"{planned.name}.json", made)
    return Reproduction(planned, measurements, verdicts, verdict, made, page)


RUNS_PER_JOB = 8
"""So many runs for every job are trained together: jobs that wait for the last ones then lose little time."""


def batches(plans: Sequence[Plan], jobs: int) -> Iterator[list[Plan]]:
    """Plans to train together, in their order: few, so that verdicts come early, but enough to keep the jobs busy."""
    batch, waiting = list[Plan](), 0
    for planned in plans:
        batch.append(planned)
        waiting += len(planned.waiting)
        if jobs == 1 or waiting >= RUNS_PER_JOB * jobs:
            yield batch
            batch, waiting = [], 0
    if batch:
        yield batch


def train_together(plans: Sequence[Plan], store: Store, machine: Machine, tell: Tell) -> list[Plan]:
    """Train what reproductions need, all side by side: first the trials, then the runs by what these choose.

    The plans are returned with these runs. Raises as `conduct`.
    """
    train_all([run for planned in plans for run in planned.untried], machine, tell)
    chosen = [
        dataclasses.replace(planned, runs=store.plan(planned.claim, planned.scale, planned.seeds)) for planned in plans
    ]
    train_all([run for planned in chosen for run in planned.waiting], machine, tell)
    return chosen


def judged(claim: Claim, scale: Scale, measurements: Mapping[str, Sequence[Measurement]]) -> list[Verdict]:
    """The verdict on every comparison of a claim, by token too where possible; at the scale quick indicative."""
    figures = {label: [one.figures for one in each] for label, each in measurements.items()}
    verdicts = [with_tokens(one.verdict(figures), one, measurements) for one in claim.comparisons]
    return [indication(one) for one in verdicts] if scale == "quick" else verdicts
