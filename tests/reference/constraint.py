"""The projections of Kanai's thesis, chapter 3, in NumPy, by full singular value decompositions."""

import numpy as np


def algorithm_3_1(w, delta):
    """Eqs 3.13-3.15."""
    u, sigma, vt = np.linalg.svd(w)
    return u @ np.diag(np.minimum(sigma, 2 - delta)) @ vt


def algorithm_3_2(w0, steps, delta, *, level=2.0):
    """Lines 1-17 for a sequence of steps already multiplied by the rate; gives each (w, s).

    The errata are applied: s is counted from zero at each step, and after line 16 the bounds of what was computed are
    min(sigma_i, 2 - delta), sorted with the rest.
    """
    w = w0.copy()
    bound = np.linalg.svd(w, compute_uv=False)
    for step in steps:
        w = w + step
        c = np.linalg.norm(step)
        s = 0
        for i in range(len(bound)):
            bound[i] = bound[i] + c
            if bound[i] >= level:
                s = i + 1
        if s > 0:
            u, sigma, vt = np.linalg.svd(w)
            for i in range(s):
                w = w - max(sigma[i] - (2 - delta), 0) * np.outer(u[:, i], vt[i])
                bound[i] = min(sigma[i], 2 - delta)
            bound = np.sort(bound)[::-1]
        yield w, s
