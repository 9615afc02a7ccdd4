"""A layer of memory in NumPy, one source and one cell at a time (docstring of `network/cores/deep_memory.py`)."""

import numpy as np

from reference.attention import additive, context
from reference.cells import sigm


def transformed(memory, step, size, read=None, write=None):
    """The memory [S, H] written over `memory` [S, M], and h after the last step.

    `step` maps (r, state) to (h, state), its state None at first; `read` and `write` are the arrays (W, U, v) of a
    score, or None for a head by location; `write` has W_e, b_e, W_v, b_v besides.
    """
    S = len(memory)
    h, state = np.zeros(size), None
    new = np.zeros((S, size))
    for t in range(S):
        r = memory[t] if read is None else context(additive(h, memory, *read), memory)[0]
        h, state = step(r, state)
        if write is None:
            new[t] = h
            continue
        *score, w_e, b_e, w_v, b_v = write
        _, weights = context(additive(h, memory, *score), memory)
        for s in range(S):
            new[s] = new[s] * (1 - weights[s] * sigm(w_e @ h + b_e)) + weights[s] * np.tanh(w_v @ h + b_v)
    return new, h
