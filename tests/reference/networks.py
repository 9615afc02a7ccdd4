"""Whole networks as their papers print them, in NumPy: several layers, an output, loops over time written out.

A sequence is a list of T vectors, each a row of a batch [B, _].
"""

from typing import NamedTuple

import numpy as np

from reference.cells import Gate, capped_lstm, lstm, sigm


def softmax(z):
    z = np.exp(z)
    return z / z.sum(-1, keepdims=True)


class DeepGate(NamedTuple):
    """A gate of layer n of Graves' network: W_{i h^n}, W_{h^{n-1} h^n} (None for the first), W_{h^n h^n}, b."""

    from_input: np.ndarray
    from_below: np.ndarray | None
    recurrent: np.ndarray
    b: np.ndarray

    def __call__(self, x, below, h):
        z = x @ self.from_input.T + h @ self.recurrent.T + self.b
        return z if self.from_below is None else z + below @ self.from_below.T


def graves(layers, outputs, b_y, xs):
    """Graves 2013, eqs 1-6, with eqs 7-11 for H: the distributions y_t.

    layers: (gates i, f, c, o; peepholes w_ci, w_cf, w_co) of each; outputs: W_{h^n y} of each.
    """
    states = [[np.zeros((len(xs[0]), len(gates[0].b)))] * 2 for gates, _ in layers]
    ys = []
    for x in xs:
        y_hat, below = b_y, None
        for (gates, (w_ci, w_cf, w_co)), state, W_hy in zip(layers, states, outputs, strict=True):
            (h, c), (i, f, g, o) = state, gates
            i_t = sigm(i(x, below, h) + w_ci * c)
            f_t = sigm(f(x, below, h) + w_cf * c)
            c_t = f_t * c + i_t * np.tanh(g(x, below, h))
            o_t = sigm(o(x, below, h) + w_co * c_t)
            below = o_t * np.tanh(c_t)
            state[:] = below, c_t
            y_hat = y_hat + below @ W_hy.T
        ys.append(softmax(y_hat))
    return ys


def melis(layers, W, b, xs, *, capped):
    """Melis, Dyer & Blunsom 2018: layers one upon the other, and all of them added up for the output."""
    step = capped_lstm if capped else lstm
    states = [[np.zeros((len(xs[0]), len(gates[0].b)))] * 2 for gates in layers]
    ys = []
    for x in xs:
        total = 0
        for gates, state in zip(layers, states, strict=True):
            state[:] = step(*gates, x, *state)
            x = state[0]
            total = total + x
        ys.append(softmax(total @ W.T + b))
    return ys


def bidirectional(forward: Gate, backward: Gate, xs):
    """Schuster & Paliwal 1997 with Elman's units: states forwards in time and backwards, side by side."""
    ahead, back = [None] * len(xs), [None] * len(xs)
    h = np.zeros((len(xs[0]), len(forward.b)))
    for t in range(len(xs)):
        ahead[t] = h = np.tanh(forward(xs[t], h))
    h = np.zeros((len(xs[0]), len(backward.b)))
    for t in reversed(range(len(xs))):
        back[t] = h = np.tanh(backward(xs[t], h))
    return [np.concatenate(pair, axis=-1) for pair in zip(ahead, back, strict=True)]
