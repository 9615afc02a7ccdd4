"""Densities of real values, written from the papers: one position, one context, NumPy."""

import numpy as np


def normal(value, mean, deviation):
    return np.exp(-0.5 * ((value - mean) / deviation) ** 2) / (np.sqrt(2 * np.pi) * deviation)


def gaussian(value, context, arrays, floor):
    """The product over columns of normal densities; the standard deviation is 1 without weights of its own."""
    mean = arrays["readout.weight"] @ context + arrays["readout.bias"]
    deviation = np.ones_like(mean)
    if "spread.weight" in arrays:
        deviation = np.sqrt(floor**2 + np.exp(arrays["spread.weight"] @ context + arrays["spread.bias"]) ** 2)
    return np.prod(normal(value, mean, deviation))


def mixture_density(value, context, arrays, components, floor):
    """Bishop 1994, eqs 22 and 23 with diagonal variances; the weights are eq. 25's softmax."""
    scores = arrays["weight.weight"] @ context + arrays["weight.bias"]
    weights = np.exp(scores) / np.exp(scores).sum()
    means = (arrays["centre.weight"] @ context + arrays["centre.bias"]).reshape(components, -1)
    sizes = np.exp(arrays["spread.weight"] @ context + arrays["spread.bias"]).reshape(components, -1)
    each = normal(value, means, np.sqrt(floor**2 + sizes**2)).prod(axis=1)
    return weights @ each
