"""NumPy transcriptions of the character-aware encoder (Kim et al. 2016, eqs 5, 6 and 8), one word at a time."""

import numpy as np


def filtered(characters, filters, bias, widths):
    """y: for each filter H [d, w] the maximum over positions of tanh(<C[:, i:i+w], H> + b).

    C [d, l] has the vectors of one word's characters, marks included; a word shorter than the filter is filled with
    zeros on its right.
    """
    size, length = characters.shape
    y = []
    for group, width in zip(filters, widths, strict=True):
        filled = np.concatenate([characters, np.zeros((size, max(0, width - length)))], axis=1)
        for flat in group:
            h = flat.reshape(width, size).T
            b = bias[len(y)]
            positions = range(filled.shape[1] - width + 1)
            f = [np.tanh(np.sum(filled[:, i : i + width] * h) + b) for i in positions]
            y.append(max(f))
    return np.array(y)


def highway(y, weight, bias):
    """t * relu(W_H y + b_H) + (1 - t) * y with t = sigm(W_T y + b_T); W_H above W_T."""
    size = len(y)
    g = np.maximum(weight[:size] @ y + bias[:size], 0)
    t = 1 / (1 + np.exp(-(weight[size:] @ y + bias[size:])))
    return t * g + (1 - t) * y
