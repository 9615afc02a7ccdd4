"""Attention as the papers print it, for one sequence: memory [S, M], queries one by one."""

import numpy as np


def softmax(scores):
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def dot(h, memory):
    """Luong et al. 2015, eq. 8: h_t^T h_s."""
    return np.array([h @ m for m in memory])


def general(h, memory, w_a):
    """Luong et al. 2015, eq. 8: h_t^T W_a h_s."""
    return np.array([h @ w_a @ m for m in memory])


def additive(h, memory, w_a, u_a, v_a):
    """Bahdanau et al. 2015, A.1.2: v_a^T tanh(W_a s + U_a h_j)."""
    return np.array([v_a @ np.tanh(w_a @ h + u_a @ m) for m in memory])


def context(scores, memory):
    """Luong et al. 2015, section 3.1; Bahdanau et al. 2015, eqs 5-6: the mean of the memory and its weights."""
    weights = softmax(scores)
    return sum(weight * m for weight, m in zip(weights, memory, strict=True)), weights


def attention_layer(c, h, w_c):
    """Luong et al. 2015, eq. 5: tanh(W_c [c_t; h_t])."""
    return np.tanh(w_c @ np.concatenate([c, h]))
