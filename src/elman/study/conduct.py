"""A claim from its plan to its verdict: train what is missing, measure, judge, write."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from elman.jobs.launching import Tell
from elman.study.claim import Claim, Measurement, Scale
from elman.study.comparison import Verdict, indication, together
from elman.study.measures import with_tokens
from elman.study.measuring import measure_all
from elman.study.page import write_claim_page
from elman.study.plan import Plan
from elman.study.record import ClaimRecord, record, write_record
from elman.study.runs import Machine, train_all
from elman.study.store import Store

RUNS_PER_JOB = 8
"""So many runs for every job are trained together: jobs that wait for the last ones then lose little time."""


@dataclass(frozen=True)
class Reproduction:
    """A claim that was judged: the verdict on each comparison, the record of all, and the page."""

    plan: Plan
    verdicts: list[Verdict]
    record: ClaimRecord
    page: Path


def conduct(planned: Plan, store: Store, machine: Machine, tell: Tell) -> Reproduction:
    """Train what is missing, measure, judge, and write NAME.json and NAME.html into the folder of the store.

    Raises Stopped where a signal arrived (the same command continues), UserError where a training failed.
    """
    claim, page = planned.claim, store.out / f"{planned.name}.html"
    (planned,) = train_together([planned], store, machine, tell)
    found = iter(measure_all([one for each in planned.runs.values() for one in each], claim.measure, machine, tell))
    measurements = {label: list(islice(found, len(each))) for label, each in planned.runs.items()}
    verdicts = judged(claim, planned.scale, measurements)
    made = record(planned, measurements, verdicts, together(claim.sentence, verdicts), page)
    write_claim_page(page, planned, made, measurements, verdicts)
    write_record(store.out / f"{planned.name}.json", made)
    return Reproduction(planned, verdicts, made, page)


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

    The plans are returned with these runs. Raises Stopped where a signal arrived (the same command continues),
    UserError where a training failed.
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
