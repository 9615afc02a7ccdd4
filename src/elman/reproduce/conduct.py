"""A reproduction of a claim, from its plan to its verdict."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from elman.config import Mixture
from elman.config.recipe import Recipe
from elman.data.catalog.prepare import locate_pairs
from elman.network.build import build_model
from elman.network.device import choose_device
from elman.network.seq2seq import SequenceToSequence
from elman.reproduce.arm import Computation, Measurement, Scale, recipe_of
from elman.reproduce.claim import Claim
from elman.reproduce.comparison import Verdict, indication, together
from elman.reproduce.grid import Trial, trial_recipes
from elman.reproduce.page import write_claim_page
from elman.reproduce.planned import UNTRAINED, Planned, PlannedComputation, PlannedRun
from elman.reproduce.record import ClaimRecord, at_scale, record, write_record
from elman.reproduce.runs import Store, found_measurement, measured
from elman.reproduce.tokens import with_tokens
from elman.reproduce.training import Machine, Tell, train_all
from elman.tasks.open import task_of


@dataclass(frozen=True)
class Plan:
    """What the reproduction of a claim needs: the runs or computations of every arm, in the order of the seeds.

    `trials` are those of the arms that are tuned; while they are not trained, `runs` have the first alternative of each
    grid. `training` are the minutes of each untrained run, by its folder; `measuring` those of all measurements and
    computations that are not kept.
    """

    claim: Claim
    scale: Scale
    seeds: tuple[int, ...]
    runs: dict[str, list[Planned]]
    trials: dict[str, list[Trial]]
    training: dict[Path, float]
    measuring: float

    @property
    def waiting(self) -> list[PlannedRun]:
        """The untrained runs, trials first."""
        return [*self.untried, *(run for each in self.runs.values() for run in _untrained(each))]

    @property
    def untried(self) -> list[PlannedRun]:
        """The untrained trials."""
        return [run for trials in self.trials.values() for run in _untrained([trial.run for trial in trials])]

    @property
    def name(self) -> str:
        """Of its files: that of the claim, with the scale unless it is small."""
        return at_scale(self.claim.name, self.scale)


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


def plan(claim: Claim, store: Store, scale: Scale, num_seeds: int | None, machine: Machine) -> Plan:
    """Plan a reproduction; a few steps of every untrained arm are timed.

    Raises UserError if there are no recipes at this scale, or data or minimal pairs cannot be used.
    """
    for pairs in claim.needs:
        locate_pairs(pairs)
    seeds = tuple(range(1, (num_seeds or claim.num_seeds(scale)) + 1))
    runs = store.plan(claim, scale, seeds)
    device, training = choose_device(machine.device), dict[Path, float]()
    trials = store.trials(claim, scale)
    tried: list[list[Planned]] = [[trial.run for trial in some] for some in trials.values()]
    for each in [*runs.values(), *tried]:
        if waiting := _untrained(each):
            training |= dict.fromkeys((run.folder for run in waiting), store.minutes_of(waiting[0], device))
    measuring = sum(_measuring(one, claim) for each in runs.values() for one in each)
    return Plan(claim, scale, seeds, runs, trials, training, measuring)


def _untrained(planned: Sequence[Planned]) -> list[PlannedRun]:
    return [one for one in planned if isinstance(one, PlannedRun) and one.status in UNTRAINED]


def _measuring(planned: Planned, claim: Claim) -> float:
    if found_measurement(planned, claim.measure) is not None:
        return 0.0
    return planned.computation.minutes if isinstance(planned, PlannedComputation) else claim.measure.minutes


def total_minutes(plans: Sequence[Plan], machine: Machine) -> float:
    """Remaining minutes of several reproductions; a run that several of them need counts once."""
    training = {folder: minutes for planned in plans for folder, minutes in planned.training.items()}
    return sum(training.values()) / machine.jobs + sum(planned.measuring for planned in plans)


def conduct(planned: Plan, store: Store, machine: Machine, tell: Tell) -> Reproduction:
    """Train what is missing, measure, judge, and write NAME.json and NAME.html into the folder of the store.

    Raises Stopped where a signal arrived (the same command continues), UserError where a training failed.
    """
    claim = planned.claim
    if planned.untried:
        train_all(planned.untried, machine, tell)
        planned = dataclasses.replace(planned, runs=store.plan(claim, planned.scale, planned.seeds))
    train_all(planned.waiting, machine, tell)
    measurements: dict[str, list[Measurement]] = {label: [] for label in planned.runs}
    for label, each in planned.runs.items():
        for one in each:
            if isinstance(one, PlannedComputation) and found_measurement(one, claim.measure) is None:
                tell(f"{one.name}: computing")
            measurements[label].append(measured(one, claim.measure))
    verdicts = judged(claim, planned.scale, measurements)
    verdict, page = together(claim.sentence, verdicts), store.out / f"{planned.name}.html"
    made = record(planned, measurements, verdicts, verdict, page)
    write_claim_page(page, planned, made, measurements, verdicts)
    write_record(store.out / f"{planned.name}.json", made)
    return Reproduction(planned, measurements, verdicts, verdict, made, page)


def judged(claim: Claim, scale: Scale, measurements: Mapping[str, Sequence[Measurement]]) -> list[Verdict]:
    """The verdict on every comparison of a claim, by token too where possible; at the scale quick indicative."""
    figures = {label: [one.figures for one in each] for label, each in measurements.items()}
    verdicts = [with_tokens(one.verdict(figures), one, measurements) for one in claim.comparisons]
    return [indication(one) for one in verdicts] if scale == "quick" else verdicts


# Nominal costs, for the list of claims: from the sizes alone, without timing a step.

RATE = 60e9
"""Floating-point operations per second of one thread of a processor of 2024, in training these models."""


def nominal_minutes(claim: Claim, scale: Scale) -> float:
    """Minutes on one thread to train all runs of a claim and to measure and compute, with nothing kept."""
    sources = [claim.origin(arm, scale) for arm in claim.arms]
    computing = [source.minutes for source in sources if isinstance(source, Computation)]
    trained = [source for source in sources if not isinstance(source, Computation)]
    once = [training_minutes(recipe_of(source, 1)) + claim.measure.minutes for source in trained]
    tried = [training_minutes(recipe) for source in trained for _, recipe in trial_recipes(source)]
    return claim.num_seeds(scale) * sum([*computing, *once]) + sum(tried)


def training_minutes(recipe: Recipe) -> float:
    """Minutes on one thread: six operations per weight and token, those of the choice for every component.

    This overestimates a choice that leaves out most words, such as adaptive softmax.
    """
    size = task_of(recipe).nominal_size(recipe)
    with torch.device("meta"):
        model = build_model(recipe.model, size.words)
    reader = _count(model.reader) if isinstance(model, SequenceToSequence) else 0
    mixed = recipe.model.output.contexts
    components = sum(mixed.heads.values()) if isinstance(mixed, Mixture) else 1
    weights = _count(model.core) + _count(model.output.contexts) + components * _count(model.output.choice)
    epochs = recipe.training.epochs + (recipe.training.fine_tune.epochs if recipe.training.fine_tune else 0)
    return 6 * (weights * size.tokens + reader * size.source_tokens) * epochs / RATE / 60


def _count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
