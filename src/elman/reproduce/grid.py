"""Tuning of the arms of a claim: the same few alternatives for each, judged on validation text only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from elman.config.recipe import Recipe
from elman.reproduce.arm import Source, recipe_of
from elman.reproduce.planned import PlannedRun, Status

SEED = 0
"""Of all trials; claims begin with seed 1."""


@dataclass(frozen=True)
class Trial:
    """One alternative of an arm: its settings, and its run."""

    settings: tuple[str, ...]
    run: PlannedRun

    @property
    def loss(self) -> float | None:
        """Nats per token of the validation text; infinite where the training diverged, None before it."""
        if self.run.status is Status.DIVERGED:
            return math.inf
        if self.run.status is not Status.DONE:
            return None
        return self.run.valid_nll


def trial_recipes(source: Source) -> list[tuple[tuple[str, ...], Recipe]]:
    """The alternatives of a source with their recipes; none where there is no grid."""
    if source.grid is None:
        return []
    alternatives, shortened = source.grid
    return [(settings, recipe_of(source, SEED, (*settings, *shortened))) for settings in alternatives]


def chosen(trials: Sequence[Trial]) -> tuple[str, ...]:
    """The settings with the lowest loss; those of the first trial while one is not trained, none without trials."""
    losses = [trial.loss for trial in trials]
    known = [loss for loss in losses if loss is not None]
    if not trials or len(known) < len(trials):
        return trials[0].settings if trials else ()
    return trials[known.index(min(known))].settings
