"""Dynamic evaluation's update and the neural cache, written from the papers one position at a time."""

import numpy as np


def rms_update(weights, trained, gradients, squares, count, lr, decay, eps):
    """Krause et al. 2018, eqs 5-8; `squares` are sums of squared gradients of `count` segments. Lists of arrays."""
    rms = [np.sqrt(square / count) for square in squares]
    mean = np.mean([np.mean(values) for values in rms])
    updated = []
    for theta, theta_0, g, values in zip(weights, trained, gradients, rms, strict=True):
        rate = np.minimum(values / mean, 1 / decay)
        updated.append(theta + decay * rate * (theta_0 - theta) - lr * g / (values + eps))
    return updated


def sgd_update(weights, trained, gradients, lr, decay):
    """Plain gradient descent with decay to the trained weights."""
    parts = zip(weights, trained, gradients, strict=True)
    return [theta + decay * (theta_0 - theta) - lr * g for theta, theta_0, g in parts]


def neural_cache(log_prob, hidden, symbols, weight, theta, window):
    """Grave et al. 2017, eqs 2 and 3: log-probability of symbols[t], which follows hidden[t]."""
    mixed = []
    for t in range(len(symbols)):
        past = range(max(0, t - window), t)
        if not past:
            mixed.append(log_prob[t])
            continue
        scores = {i: np.exp(theta * hidden[t] @ hidden[i]) for i in past}
        share = sum(score for i, score in scores.items() if symbols[i] == symbols[t]) / sum(scores.values())
        mixed.append(np.log((1 - weight) * np.exp(log_prob[t]) + weight * share))
    return np.array(mixed)
