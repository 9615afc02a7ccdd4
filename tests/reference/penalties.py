"""Penalties in NumPy, with loops where the papers have sums."""

import numpy as np


def activation(h, alpha):
    """AR (Merity, McCann & Socher 2017): alpha times the mean square of the dropped outputs, h [T, B, H]."""
    return alpha * np.mean([value**2 for value in h.ravel()])


def temporal_activation(h, beta):
    """TAR: beta times the mean square of h_t - h_{t+1} of the outputs before dropout, h [T, B, H]."""
    return beta * np.mean([(h[t] - h[t + 1]) ** 2 for t in range(len(h) - 1)])


def balance_minibatch(prior, weight):
    """Takase et al. 2018, eqs 12-13: (std(B) / avg(B))^2, B [S] = sum of pi over the minibatch [T, B, S]."""
    B = sum(prior[t, b] for t in range(prior.shape[0]) for b in range(prior.shape[1]))
    average = sum(B) / len(B)
    variance = sum((value - average) ** 2 for value in B) / len(B)
    return weight * (np.sqrt(variance) / average) ** 2


def balance_columns(prior, weight):
    """The published code: (S - 1) * unbiased variance / mean^2 of the [batch, component] sums over time."""
    sums = prior.sum(0).ravel()
    variance = sum((value - sums.mean()) ** 2 for value in sums) / (len(sums) - 1)
    return weight * (prior.shape[-1] - 1) * variance / sums.mean() ** 2
