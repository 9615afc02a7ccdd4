"""What the reproduction of a claim needs, what of it is kept, and how long the rest takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elman.data.catalog.prepare import locate_minimal_pairs
from elman.network.device import choose_device
from elman.reproduce.arm import Scale, at_scale
from elman.reproduce.claim import Claim
from elman.reproduce.grid import Trial
from elman.reproduce.measuring import at_once, measuring_minutes
from elman.reproduce.planned import UNTRAINED, Planned, PlannedRun
from elman.reproduce.runs import Store
from elman.reproduce.training import Machine


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
    runs = store.plan(claim, scale, seeds)
    device, training = choose_device(machine.device), dict[Path, float]()
    trials = store.trials(claim, scale)
    tried: list[list[Planned]] = [[trial.run for trial in some] for some in trials.values()]
    for each in [*runs.values(), *tried]:
        if waiting := _untrained(each):
            training |= dict.fromkeys((run.folder for run in waiting), store.minutes_of(waiting[0], device))
    measuring = [measuring_minutes(one, claim.measure) for each in runs.values() for one in each]
    together = max(1, min(at_once(claim.measure, machine), len(list(filter(None, measuring)))))
    return Plan(claim, scale, seeds, runs, trials, training, sum(measuring) / together)


def _untrained(planned: Sequence[Planned]) -> list[PlannedRun]:
    return [one for one in planned if isinstance(one, PlannedRun) and one.status in UNTRAINED]


def total_minutes(plans: Sequence[Plan], machine: Machine) -> float:
    """Remaining minutes of several reproductions; a run that several of them need counts once."""
    training = {folder: minutes for planned in plans for folder, minutes in planned.training.items()}
    together = max(1, min(machine.launch.at_once, len(training)))
    return sum(training.values()) / together + sum(planned.measuring for planned in plans)
