"""Weights of a mixture of models by expectation maximisation on held-out text (Jelinek & Mercer 1980)."""

from collections.abc import Sequence

import numpy as np

ITERATIONS, CHANGE = 1000, 1e-6
"""When the weights are found: after so many steps, or once none changes by more."""


def best_weights(log_probs: Sequence[np.ndarray]) -> list[float]:
    """The weights, which sum to one, that make a text most probable under the mixture of M models.

    `log_probs` are those (nats) of each of its tokens under each model, [n] each; a token that has none (NaN) under one
    of them is not counted. Each step sets a weight to the mean share that its model has in the probability of a token,
    as SRILM's `compute-best-mix` does; the likelihood is concave in the weights, so there is one maximum.

    Example:
        >>> [round(weight, 3) for weight in best_weights([np.log([0.9, 0.1, 0.9]), np.log([0.1, 0.9, 0.1])])]
        [0.708, 0.292]
    """
    stacked = np.stack([part.astype(np.float64) for part in log_probs])
    stacked = stacked[:, ~np.isnan(stacked).any(axis=0)]
    stacked = stacked[:, np.isfinite(stacked).any(axis=0)]
    relative = np.exp(stacked - stacked.max(axis=0))
    weights = np.full(len(stacked), 1 / len(stacked))
    for _ in range(ITERATIONS):
        shares = weights[:, None] * relative
        improved = (shares / shares.sum(axis=0)).mean(axis=1)
        done = np.abs(improved - weights).max() < CHANGE
        weights = improved
        if done:
            break
    return [float(weight) for weight in weights / weights.sum()]
