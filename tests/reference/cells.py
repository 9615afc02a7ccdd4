"""Recurrent cells as their papers print them, in NumPy, gate by gate; a vector is a row of a batch.

A gate is (W, U, b, d): input weights [H, I], recurrent weights [H, H], input bias [H], recurrent bias [H].
"""

from typing import NamedTuple

import numpy as np


class Gate(NamedTuple):
    W: np.ndarray
    U: np.ndarray
    b: np.ndarray
    d: np.ndarray

    def __call__(self, x, h):
        return x @ self.W.T + self.b + h @ self.U.T + self.d


def sigm(x):
    return 1 / (1 + np.exp(-x))


def elman(gate, x, h, f=np.tanh):
    """Elman 1990: h_t = f(W x_t + U h_{t-1} + b)."""
    return f(gate(x, h))


def lstm(i, f, g, o, x, h, c):
    """Gers, Schmidhuber & Cummins 2000."""
    c = sigm(f(x, h)) * c + sigm(i(x, h)) * np.tanh(g(x, h))
    return sigm(o(x, h)) * np.tanh(c), c


def lstm_1997(i, g, o, x, h, c):
    """Hochreiter & Schmidhuber 1997: the cell is a sum that never forgets."""
    c = c + sigm(i(x, h)) * np.tanh(g(x, h))
    return sigm(o(x, h)) * np.tanh(c), c


def peephole_lstm(i, f, g, o, w_ci, w_cf, w_co, x, h, c):
    """Graves 2013, eqs 7-11: diagonal weights from cell to gates; the output gate sees the new cell."""
    input_gate = sigm(i(x, h) + w_ci * c)
    forget_gate = sigm(f(x, h) + w_cf * c)
    c_t = forget_gate * c + input_gate * np.tanh(g(x, h))
    output_gate = sigm(o(x, h) + w_co * c_t)
    return output_gate * np.tanh(c_t), c_t


def gru_reset_before(r, z, n, x, h):
    """Cho et al. 2014; thesis 2.29-2.32: the reset gate acts on h before the recurrent product."""
    candidate = np.tanh(x @ n.W.T + n.b + (sigm(r(x, h)) * h) @ n.U.T + n.d)
    update = sigm(z(x, h))
    return update * h + (1 - update) * candidate


def gru_reset_after(r, z, n, x, h):
    """The vendor form: the reset gate acts on the product, its bias included."""
    candidate = np.tanh(x @ n.W.T + n.b + sigm(r(x, h)) * (h @ n.U.T + n.d))
    update = sigm(z(x, h))
    return update * h + (1 - update) * candidate


def gru_survey(r, z, n, x, h):
    """The survey's eqs 25-28: z and 1 - z exchanged, so that z lets the new state in."""
    candidate = np.tanh(x @ n.W.T + n.b + (sigm(r(x, h)) * h) @ n.U.T + n.d)
    update = sigm(z(x, h))
    return (1 - update) * h + update * candidate


def window(W, d, words):
    """Bengio et al. 2003, eq. 1: tanh(d + H x), x the concatenated word vectors, oldest first."""
    return np.tanh(d + np.concatenate(words, axis=-1) @ W.T)
