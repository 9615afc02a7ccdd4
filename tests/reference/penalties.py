"""Penalties in NumPy, with loops where the papers have sums."""

import numpy as np


def activation(h, alpha, counts=None):
    """AR (Merity, McCann & Socher 2017): alpha times the mean square of the dropped outputs, h [T, B, H].

    `counts` [T, B]: where targets count; None: everywhere.
    """
    return alpha * np.mean([h[t, b] ** 2 for t, b in np.ndindex(h.shape[:2]) if counts is None or counts[t, b]])


def temporal_activation(h, beta, counts=None):
    """TAR: beta times the mean square of h_t - h_{t+1} of the outputs before dropout, h [T, B, H]."""
    pairs = [
        (h[t, b] - h[t + 1, b]) ** 2
        for t, b in np.ndindex(len(h) - 1, h.shape[1])
        if counts is None or (counts[t, b] and counts[t + 1, b])
    ]
    return beta * np.mean(pairs)


def norm_stabiliser(h, beta, counts=None):
    """Krueger & Memisevic 2016, eq. 1, without the state before: beta / T sum_t (||h_t||_2 - ||h_{t-1}||_2)^2."""
    squares = [
        (np.sqrt(sum(x**2 for x in h[t, b])) - np.sqrt(sum(x**2 for x in h[t - 1, b]))) ** 2
        for t, b in np.ndindex(h.shape[:2])
        if t > 0 and (counts is None or (counts[t, b] and counts[t - 1, b]))
    ]
    return beta * sum(squares) / len(squares)


def balance_minibatch(prior, weight, counts=None):
    """Takase et al. 2018, eqs 12-13: (std(B) / avg(B))^2, B [S] = sum of pi over the minibatch [T, B, S]."""
    B = sum(prior[t, b] for t, b in np.ndindex(prior.shape[:2]) if counts is None or counts[t, b])
    average = sum(B) / len(B)
    variance = sum((value - average) ** 2 for value in B) / len(B)
    return weight * (np.sqrt(variance) / average) ** 2


def balance_columns(prior, weight, counts=None):
    """The published code: (S - 1) * unbiased variance / mean^2 of the [batch, component] sums over time.

    With `counts`, of means over the steps of a column that count, where there are any.
    """
    columns = range(prior.shape[1])
    if counts is None:
        sums = prior.sum(0).ravel()
    else:
        sums = np.array([prior[counts[:, b], b].mean(0) for b in columns if counts[:, b].any()]).ravel()
    variance = sum((value - sums.mean()) ** 2 for value in sums) / (len(sums) - 1)
    return weight * (prior.shape[-1] - 1) * variance / sums.mean() ** 2
