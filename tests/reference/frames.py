"""Distributions over frames of notes as the papers print them, note by note in NumPy."""

import numpy as np


def sigm(z):
    return 1 / (1 + np.exp(-z))


def bernoulli(v, W, b, context):
    """prod_p sigm(z_p)^v_p (1 - sigm(z_p))^(1 - v_p), z = W context + b (logistic outputs)."""
    p = sigm(W @ context + b)
    return np.prod(np.where(v, p, 1 - p))


def nade(v, W, V, b, c):
    """Larochelle & Murray (2011), eqs 4 and 5 and their Algorithm 1."""
    a, probability = c.copy(), 1.0
    for p in range(len(v)):
        h = sigm(a)
        p_on = sigm(b[p] + V[p] @ h)
        probability *= p_on if v[p] else 1 - p_on
        a = a + W[p] * v[p]
    return probability


def rnn_nade(v, W, V, b_0, B, c_0, C, context):
    """Boulanger-Lewandowski et al. (2012), section 4: the biases of the NADE follow the recurrent network's state."""
    return nade(v, W, V, b_0 + B @ context, c_0 + C @ context)
