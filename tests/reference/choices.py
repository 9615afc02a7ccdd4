"""Choices as the papers print them, in NumPy, in the probability domain, for one context x [D] and word by word."""

import numpy as np

from reference.outputs import distribution, sigm


def adaptive(x, head, bias, downs, ups, activation, tail_biases=None):
    """Grave et al. 2017, section 4: the head's words, then each tail's in the measure of the head's entry for it."""
    tail_biases = [0] * len(ups) if tail_biases is None else tail_biases
    first = distribution(activation, head @ x + bias)
    num_words = len(head) - len(ups)
    tails = [
        first[num_words + i] * distribution(activation, up @ (down @ x) + tail_bias)
        for i, (down, up, tail_bias) in enumerate(zip(downs, ups, tail_biases, strict=True))
    ]
    return np.concatenate([first[:num_words], *tails])


def tree(x, W, b, cluster_W, cluster_b, cluster_of, activation):
    """p(y) = p(cluster) p(y | cluster)."""
    p_cluster = distribution(activation, cluster_W @ x + cluster_b)
    p = np.empty(len(W))
    for c in range(len(cluster_W)):
        words = np.flatnonzero(cluster_of == c)
        p[words] = p_cluster[c] * distribution(activation, W[words] @ x + b[words])
    return p


def rare_class(x, W, b, num_rare, activation):
    """Mikolov et al. 2010, eq. 7: the last output, divided evenly."""
    p = distribution(activation, W @ x + b)
    return np.concatenate([p[:-1], np.full(num_rare, p[-1] / num_rare)]) if num_rare else p


def monotone(z, raw_slope, reach):
    """Ganea et al. 2019: an increasing piecewise linear function that continues its last pieces."""
    slope = np.log1p(np.exp(raw_slope))
    knots = np.linspace(-reach, reach, len(slope) + 1)
    heights = np.concatenate([[0], np.cumsum(slope * np.diff(knots))]) - reach
    inside = np.interp(z, knots, heights)
    return inside + slope[0] * np.minimum(z + reach, 0) + slope[-1] * np.maximum(z - reach, 0)


def mixtape_gates(x, U, u, v, b):
    """Yang et al. 2019, sigmoid tree with four components; U [3, d2, D], u [3, D], a word's v [d2] and b [3]."""
    g1, g2, g3 = (sigm(v @ np.tanh(U[k] @ x) + u[k] @ x + b[k]) for k in range(3))
    return np.array([g1 * g2, g1 * (1 - g2), (1 - g1) * g3, (1 - g1) * (1 - g3)])


def mixtape(x, H, W, b, gates, activation):
    """z_y = sum_k pi_k(y) h_k^T w_y + b_y; gates: pi of every word."""
    h = [np.tanh(H_k @ x) for H_k in H]
    z = [sum(pi_k * (h_k @ w) for pi_k, h_k in zip(pi, h, strict=True)) for pi, w in zip(gates, W, strict=True)]
    return distribution(activation, np.array(z) + b)
