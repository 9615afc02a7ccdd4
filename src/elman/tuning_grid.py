"""Where dynamic evaluation and the cache are looked for."""

from collections.abc import Sequence

import msgspec

from elman.evaluation.dynamic import Rule

RATES = {
    "rms": (tuple(rate * 1e-5 for rate in (3, 4, 5, 6, 7, 10)), (1e-3, 2e-3, 3e-3, 5e-3)),
    "sgd": ((0.03, 0.1, 0.3, 1.0), (0.0, 1e-3, 1e-2)),
}
"""Learning rates and decays; those of "rms" are the grid of the thesis, section 4.4.1."""

STRIDE, STRIDES = 1.5, 8
"""Where the best point lies at the border of the grid, it is followed outwards: by this factor, so often at most."""

CACHES = ((0.05, 0.1, 0.15, 0.2, 0.3), (0.05, 0.1, 0.2, 0.4, 0.7, 1.0), (500, 2000))
"""Weights, thetas and windows of the cache."""


def beyond(rule: Rule, rates: Sequence[float], decays: Sequence[float]) -> list[Rule]:
    """The points one stride outwards from a rule at the border of the grid or beyond it; none from inside."""
    replace = msgspec.structs.replace
    points = []
    if rule.lr >= max(rates):
        points.append(replace(rule, lr=rule.lr * STRIDE))
    if rule.lr <= min(rates):
        points.append(replace(rule, lr=rule.lr / STRIDE))
    if rule.decay >= max(decays):
        points.append(replace(rule, decay=rule.decay * STRIDE))
    if 0 < rule.decay <= min(decays):
        points.append(replace(rule, decay=rule.decay / STRIDE))
    return points
