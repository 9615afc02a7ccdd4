"""A claim from its plan to its verdicts: what it needs, what of that is kept, and how long the rest takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from elman.config import Model
from elman.config.recipe import Recipe
from elman.data.catalog.prepare import locate_minimal_pairs
from elman.learning.progress import phases_of
from elman.network.build import build_model
from elman.network.device import choose_device
from elman.network.output.contexts import Mixture
from elman.network.seq2seq import SequenceToSequence
from elman.study.claim import Claim, Computation, Scale, at_scale
from elman.study.measuring import at_once, measuring_minutes
from elman.study.runs import Machine, PlannedRun
from elman.study.store import Planned, Store, Trial, trial_recipes
from elman.tasks.open import task_of

RATE = 60e9
"""Floating-point operations per second of one thread of a processor of 2024, in training these models."""


@dataclass(frozen=True)
class Plan:
    """What the reproduction of a claim needs: the runs or computations of every arm, in the order of the seeds.

    `trials` are those of the arms that are tuned; while they are not trained, `runs` have the first alternative of each
    grid. `training` are the minutes of each untrained run, by its folder; `measuring` those in which all measurements
    and computations that are not kept are made.
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


def plan(claim: Claim, store: Store, scale: Scale, num_seeds: int | None, machine: Machine) -> Plan:
    """Plan a reproduction; a few steps of every untrained arm are timed.

    Raises UserError if there are no recipes at this scale, or data or minimal pairs cannot be used.
    """
    for pairs in claim.needs:
        locate_minimal_pairs(pairs)
    seeds = tuple(range(1, (num_seeds or claim.num_seeds(scale)) + 1))
    runs, trials = store.plan(claim, scale, seeds), store.trials(claim, scale)
    device, training = choose_device(machine.device), dict[Path, float]()
    tried: list[list[Planned]] = [[trial.run for trial in some] for some in trials.values()]
    for each in [*runs.values(), *tried]:
        if waiting := _untrained(each):
            training |= dict.fromkeys((run.folder for run in waiting), store.minutes_of(waiting[0], device))
    measuring = [measuring_minutes(one, claim.measure) for each in runs.values() for one in each]
    together = max(1, min(at_once(claim.measure, machine), len(list(filter(None, measuring)))))
    return Plan(claim, scale, seeds, runs, trials, training, sum(measuring) / together)


def _untrained(planned: Sequence[Planned]) -> list[PlannedRun]:
    return [one for one in planned if isinstance(one, PlannedRun) and one.is_open]


def total_minutes(plans: Sequence[Plan], machine: Machine) -> float:
    """Remaining minutes of several reproductions; a run that several of them need counts once."""
    training = {folder: minutes for planned in plans for folder, minutes in planned.training.items()}
    together = max(1, min(machine.launch.at_once, len(training)))
    return sum(training.values()) / together + sum(planned.measuring for planned in plans)


def nominal_minutes(claim: Claim, scale: Scale) -> float:
    """Minutes on one thread to train all runs of a claim and to measure and compute, from the sizes of its networks."""
    sources = [claim.origin(arm, scale) for arm in claim.arms]
    computing = [source.minutes for source in sources if isinstance(source, Computation)]
    trained = [source for source in sources if not isinstance(source, Computation)]
    once = [training_minutes(source.at(1)) + claim.measure.minutes for source in trained]
    tried = [training_minutes(recipe) for source in trained for _, recipe in trial_recipes(source)]
    return claim.num_seeds(scale) * sum([*computing, *once]) + sum(tried)


def training_minutes(recipe: Recipe) -> float:
    """Minutes on one thread: six operations per weight and token, those of the choice for every component.

    This overestimates a choice that leaves out most words, such as adaptive softmax.
    """
    size = task_of(recipe).nominal_size(recipe)
    counted = repr(recipe.model), size.words
    if counted not in _WEIGHTS:
        _WEIGHTS[counted] = _weights(recipe.model, size.words)
    weights, reader = _WEIGHTS[counted]
    epochs = sum(phase.epochs for phase in phases_of(recipe.training))
    return 6 * (weights * size.tokens + reader * size.source_tokens) * epochs / RATE / 60


_WEIGHTS: dict[tuple[str, int], tuple[int, int]] = {}
"""Those of networks that were built already: most runs of a claim differ in other keys."""


def _weights(record: Model, words: int) -> tuple[int, int]:
    """Those that a target token passes, and those of the reader of sources."""
    with torch.device("meta"):
        model = build_model(record, words)
    reader = _count(model.reader) if isinstance(model, SequenceToSequence) else 0
    mixed = record.output.contexts
    components = sum(mixed.heads.values()) if isinstance(mixed, Mixture) else 1
    return _count(model.core) + _count(model.output.contexts) + components * _count(model.output.choice), reader


def _count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
