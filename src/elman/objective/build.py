"""From a recipe to the objective of training."""

from elman import config
from elman.objective.loss import Objective
from elman.objective.penalties import (
    ActivationPenalty,
    BalancePenalty,
    FixedPointPenalty,
    IncrementalPenalty,
    Penalty,
    TemporalActivationPenalty,
    WeightPenalty,
)


def build_objective(recipe: config.Training) -> Objective:
    """Negative log-likelihood and the penalties with a weight."""
    weights = recipe.penalties
    penalties: list[Penalty] = []
    if weights.ar:
        penalties.append(ActivationPenalty(weights.ar))
    if weights.tar:
        penalties.append(TemporalActivationPenalty(weights.tar))
    if weights.balance:
        penalties.append(BalancePenalty(weights.balance, columns=weights.balance_form == "columns"))
    of_weights: list[WeightPenalty] = []
    if weights.stability:
        trained_for = IncrementalPenalty if weights.stability_tier == 2 else FixedPointPenalty
        of_weights.append(trained_for(weights.stability, weights.stability_margin))
    return Objective(penalties, recipe.loss, of_weights)
