"""A claim from its plan to its verdict: what it needs and how long that takes; train, measure, judge, write."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch

from elman.config import Model
from elman.config.recipe import Recipe
from elman.data.catalog.known import locate_minimal_pairs
from elman.jobs.launching import Tell
from elman.learning.progress import phases_of
from elman.network.build import build_model
from elman.network.cores.layer import Layer
from elman.network.device import choose_device
from elman.network.output.contexts import Mixture
from elman.network.seq2seq import SequenceToSequence
from elman.study.claim import Claim, Computation, Measurement, Scale
from elman.study.comparison import Verdict, bounded, indication, together
from elman.study.figures import write_claim_page
from elman.study.measures import at_once, measure_all, measuring_minutes, with_tokens
from elman.study.planning import register
from elman.study.record import ClaimRecord, record, write_record
from elman.study.runs import Machine, train_all
from elman.study.store import Plan, Planned, Store, trial_recipes, untrained
from elman.tasks.estimate import gpu_seconds
from elman.tasks.open import task_of

RATE = 60e9  # floating-point operations per second of one thread of a processor of 2024, in training these models
STEP = 5e-4  # seconds that each layer takes for a time step of a batch beside its products: the median of 50 claims

RUNS_PER_JOB = 8
"""This number of runs for every job is trained together: jobs that wait for the last ones then lose little time."""


def plan(claim: Claim, store: Store, scale: Scale, asked: Sequence[int] | None, machine: Machine) -> Plan:
    """Plan a reproduction; a few steps of every untrained arm are timed.

    Raises UserError if there are no recipes at this scale, or data or minimal pairs cannot be used.
    """
    for pairs in claim.needs:
        locate_minimal_pairs(pairs)
    seeds = tuple(asked or range(1, claim.num_seeds(scale) + 1))
    runs, trials = store.plan(claim, scale, seeds), store.trials(claim, scale)
    device, training = choose_device(machine.device), dict[Path, float]()
    tried: list[list[Planned]] = [[trial.run for trial in some] for some in trials.values()]
    for each in [*runs.values(), *tried]:
        if waiting := untrained(each):
            training |= dict.fromkeys((run.folder for run in waiting), store.minutes_of(waiting[0], device))
    measuring = [measuring_minutes(one, claim.measure) for each in runs.values() for one in each]
    side_by_side = max(1, min(at_once(claim.measure, machine), len(list(filter(None, measuring)))))
    return Plan(claim, scale, seeds, runs, trials, training, sum(measuring) / side_by_side)


def total_minutes(plans: Sequence[Plan], machine: Machine) -> float:
    """Remaining minutes of several reproductions; a run that several of them need counts once."""
    training = {folder: minutes for planned in plans for folder, minutes in planned.training.items()}
    side_by_side = max(1, min(machine.launch.at_once, len(training)))
    return sum(training.values()) / side_by_side + sum(planned.measuring for planned in plans)


def nominal_minutes(claim: Claim, scale: Scale) -> float:
    """Minutes on one thread to train all runs of a claim and to measure and compute, from the sizes of its networks."""
    sources = [claim.origin(arm, scale) for arm in claim.arms]
    computing = [source.minutes for source in sources if isinstance(source, Computation)]
    trained = [source for source in sources if not isinstance(source, Computation)]
    once = [training_minutes(source.at(1)) + claim.measure.minutes for source in trained]
    tried = [training_minutes(recipe) for source in trained for _, recipe in trial_recipes(source)]
    return claim.num_seeds(scale) * sum([*computing, *once]) + sum(tried)


def training_minutes(recipe: Recipe, *, gpu: bool = False) -> float:
    """Minutes on one thread: six operations per weight and token, for the choice once per component, and steps.

    This overestimates a choice that leaves out most words, such as adaptive softmax. With `gpu` those on a GPU.
    """
    size = task_of(recipe).nominal_size(recipe)
    network = _weights(recipe.model, size.words)
    epochs = sum(phase.epochs for phase in phases_of(recipe.training))
    steps = network.layers * (size.tokens + size.source_tokens) / recipe.training.batch_size
    products = 6 * (network.of_token * size.tokens + network.of_source * size.source_tokens)
    return (gpu_seconds(steps, products) if gpu else products / RATE + STEP * steps) * epochs / 60


def parameters_of(recipe: Recipe) -> int:
    """Of the network, where it is trained on the recipe's own data; raises UserError where it names none."""
    return _weights(recipe.model, task_of(recipe).nominal_size(recipe).words).parameters


class _Weights(NamedTuple):
    """The weights of a network, of these for each token of a text and of its source, and the layers of each of both."""

    parameters: int
    of_token: int
    of_source: int
    layers: int


_WEIGHTS: dict[tuple[str, int], _Weights] = {}
"""Of networks that were built already: most runs of a claim differ in other keys."""


def _weights(record: Model, words: int) -> _Weights:
    if (key := (repr(record), words)) in _WEIGHTS:
        return _WEIGHTS[key]

    def count(module: Any) -> int:
        return sum(parameter.numel() for parameter in module.parameters())

    with torch.device("meta"):
        model = build_model(record, words)
    mixed = record.output.contexts
    components = sum(mixed.heads.values()) if isinstance(mixed, Mixture) else 1
    weights = count(model.core) + count(model.output.contexts) + components * count(model.output.choice)
    layers = sum(isinstance(module, Layer) for module in model.modules())
    pair = isinstance(model, SequenceToSequence)
    _WEIGHTS[key] = _Weights(count(model), weights, count(model.reader) if pair else 0, max(1, layers // (1 + pair)))
    return _WEIGHTS[key]


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
    plans = [] if planned.scale == "quick" else register(planned, store)
    fresh = plans[-1].fresh if plans else planned.seeds
    judging = {
        label: [one for seed, one in zip(planned.seeds, each, strict=True) if seed in fresh]
        for label, each in measurements.items()
    }
    verdicts = judged(claim, planned.scale, judging)
    made = record(planned, measurements, verdicts, together(claim.sentence, verdicts), page, plans)
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
    for planned in plans:
        if planned.scale != "quick":
            last = register(planned, store)[-1]
            tell(f"{planned.name}: plan {last.digest[:12]} of {last.written}")
    train_all([run for planned in plans for run in planned.untried], machine, tell)
    chosen = [
        dataclasses.replace(planned, runs=store.plan(planned.claim, planned.scale, planned.seeds)) for planned in plans
    ]
    train_all([run for planned in chosen for run in planned.waiting], machine, tell)
    return chosen


def judged(claim: Claim, scale: Scale, measurements: Mapping[str, Sequence[Measurement]]) -> list[Verdict]:
    figures = {label: [one.figures for one in each] for label, each in measurements.items()}
    verdicts = [with_tokens(one.verdict(figures), one, measurements) for one in claim.comparisons]
    return [indication(one) if scale == "quick" else bounded(one) for one in verdicts]
