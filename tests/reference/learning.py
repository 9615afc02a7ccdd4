"""Learning rules as their papers print them, in NumPy, with the loops over time written out."""

import numpy as np


def attenuated_bptt(W_x, W_h, b, V, xs, targets, h, factor):
    """Gradients of sum_t -log softmax(V h_t)[y_t], the mean over the batch, with h_t = tanh(W_x x + W_h h_{t-1} + b).

    The error that reaches h_{t-1} from h_t is multiplied by `factor` (the survey: "the influence of the past is
    attenuated"). xs [T, B, I], targets [T, B], h [B, H]; returned for W_x, W_h, b, V and xs.
    """
    states, rows = [h], len(h)
    for x in xs:
        states.append(np.tanh(x @ W_x.T + states[-1] @ W_h.T + b))
    gradients = [np.zeros_like(part) for part in (W_x, W_h, b, V, xs)]
    back = np.zeros_like(h)
    for t in reversed(range(len(xs))):
        z = states[t + 1] @ V.T
        error = np.exp(z) / np.exp(z).sum(1, keepdims=True)
        error[np.arange(rows), targets[t]] -= 1
        error /= rows
        gradients[3] += error.T @ states[t + 1]
        delta = (error @ V + factor * back) * (1 - states[t + 1] ** 2)
        gradients[0] += delta.T @ xs[t]
        gradients[1] += delta.T @ states[t]
        gradients[2] += delta.sum(0)
        gradients[4][t] = delta @ W_x
        back = delta @ W_h
    return gradients
