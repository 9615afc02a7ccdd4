"""The neural Turing machine as its paper prints it, in NumPy: one sequence, one head and one row at a time."""

from typing import NamedTuple

import numpy as np

from reference.cells import sigm


class Head(NamedTuple):
    """What the controller's output says to one head, before any function is applied; `e` and `a` of heads that write.

    k [W], beta, g, gamma: numbers, s [S], e and a [W].
    """

    k: np.ndarray
    beta: float
    g: float
    s: np.ndarray
    gamma: float
    e: np.ndarray | None = None
    a: np.ndarray | None = None


def softplus(x):
    return np.log1p(np.exp(x))


def softmax(x):
    x = np.exp(x)
    return x / x.sum()


def weighting(M, w_before, head, eps):
    """Graves, Wayne & Danihelka 2014, eqs 5-9: by content, interpolated, shifted round the memory, sharpened."""
    N, k, reach = len(M), np.tanh(head.k), len(head.s) // 2
    similarity = [k @ row / np.sqrt((k @ k + eps) * (row @ row + eps)) for row in M]
    w_c = softmax(softplus(head.beta) * np.array(similarity))
    g, s = sigm(head.g), softmax(head.s)
    w_g = g * w_c + (1 - g) * w_before
    w = np.zeros(N)
    for i in range(N):
        for j in range(N):
            for offset in range(-reach, reach + 1):
                if (i - j - offset) % N == 0:
                    w[i] += w_g[j] * s[offset + reach]
    w = w ** (1 + softplus(head.gamma))
    return w / w.sum()


def read(M, w):
    """Eq. 2."""
    return sum(w_i * row for w_i, row in zip(w, M, strict=True))


def write(M, heads):
    """Eqs 3 and 4 for (w, head) of every head that writes: all erase, then all add."""
    M = M.copy()
    for w, head in heads:
        for i in range(len(M)):
            M[i] = M[i] * (1 - w[i] * sigm(head.e))
    for w, head in heads:
        for i in range(len(M)):
            M[i] = M[i] + w[i] * np.tanh(head.a)
    return M
