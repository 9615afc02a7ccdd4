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


def continuous(gate, tau, x, h, f=np.tanh, dt=1.0):
    """One Euler step of tau dh/dt = -h + f(W x + U h + b) (Beer 1995); tau [H]."""
    return h + dt / tau * (f(gate(x, h)) - h)


def unitary_matrix(theta, v_1, v_2, order):
    """W = D_3 R_2 F^-1 D_2 P R_1 F D_1 (Arjovsky, Shah & Bengio 2016, eq. 9), [n, n]; theta [3, n], order = P."""
    n = len(v_1)
    F = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n) / np.sqrt(n)
    D_1, D_2, D_3 = (np.diag(np.exp(1j * row)) for row in theta)
    R_1, R_2 = (np.eye(n) - 2 * np.outer(v, v.conj()) / np.vdot(v, v) for v in (v_1, v_2))
    return D_3 @ R_2 @ F.conj().T @ D_2 @ np.eye(n)[list(order)] @ R_1 @ F @ D_1


def unitary(V, bias, theta, v_1, v_2, b, order, x, h):
    """modReLU(W h + V x) of states [Re h, Im h] (eqs 8 and 9); |z| has 1e-5 added under its root."""
    n = len(b)
    z = x @ V.T + bias
    z = z[:, :n] + 1j * z[:, n:] + (h[:, :n] + 1j * h[:, n:]) @ unitary_matrix(theta, v_1, v_2, order).T
    modulus = np.sqrt(np.abs(z) ** 2 + 1e-5)
    z = np.maximum(modulus + b, 0) * z / modulus
    return np.concatenate([z.real, z.imag], axis=1)


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


def coupled_lstm(f, g, o, x, h, c):
    """Greff et al. 2017, CIFG: the input gate is what the forget gate leaves."""
    forget = sigm(f(x, h))
    c_t = forget * c + (1 - forget) * np.tanh(g(x, h))
    return sigm(o(x, h)) * np.tanh(c_t), c_t


def capped_lstm(i, f, g, o, x, h, c):
    """Melis, Dyer & Blunsom 2018: no more is let in than was forgotten."""
    forget = sigm(f(x, h))
    c_t = forget * c + np.minimum(sigm(i(x, h)), 1 - forget) * np.tanh(g(x, h))
    return sigm(o(x, h)) * np.tanh(c_t), c_t


def lstm_nig(f, g, o, p_f, p_o, x, h, c):
    """Greff et al. 2017, NIG: no input gate. These variants have peepholes, and differ from it in one place each."""
    c_t = np.tanh(g(x, h)) + sigm(f(x, h) + p_f * c) * c
    return np.tanh(c_t) * sigm(o(x, h) + p_o * c_t), c_t


def lstm_nfg(i, g, o, p_i, p_o, x, h, c):
    """NFG: no forget gate."""
    c_t = np.tanh(g(x, h)) * sigm(i(x, h) + p_i * c) + c
    return np.tanh(c_t) * sigm(o(x, h) + p_o * c_t), c_t


def lstm_nog(i, f, g, p_i, p_f, x, h, c):
    """NOG: no output gate."""
    c_t = np.tanh(g(x, h)) * sigm(i(x, h) + p_i * c) + c * sigm(f(x, h) + p_f * c)
    return np.tanh(c_t), c_t


def lstm_niaf(i, f, g, o, p_i, p_f, p_o, x, h, c):
    """NIAF: no activation of the input."""
    c_t = g(x, h) * sigm(i(x, h) + p_i * c) + c * sigm(f(x, h) + p_f * c)
    return np.tanh(c_t) * sigm(o(x, h) + p_o * c_t), c_t


def lstm_noaf(i, f, g, o, p_i, p_f, p_o, x, h, c):
    """NOAF: no activation of the output."""
    c_t = np.tanh(g(x, h)) * sigm(i(x, h) + p_i * c) + c * sigm(f(x, h) + p_f * c)
    return c_t * sigm(o(x, h) + p_o * c_t), c_t


def lstm_cifg(f, g, o, p_f, p_o, x, h, c):
    """CIFG: i = 1 - f."""
    forget = sigm(f(x, h) + p_f * c)
    c_t = np.tanh(g(x, h)) * (1 - forget) + c * forget
    return np.tanh(c_t) * sigm(o(x, h) + p_o * c_t), c_t


def lstm_fgr(i, f, g, o, p_i, p_f, p_o, R, x, h, c, i_0, f_0, o_0):
    """FGR: the gates also hear all gates of the step before; R has the rows and columns of i, f, o."""
    n = c.shape[-1]
    (R_ii, R_fi, R_oi), (R_if, R_ff, R_of), (R_io, R_fo, R_oo) = (
        [block[:, :n], block[:, n : 2 * n], block[:, 2 * n :]] for block in (R[:n], R[n : 2 * n], R[2 * n :])
    )
    i_t = sigm(i(x, h) + p_i * c + i_0 @ R_ii.T + f_0 @ R_fi.T + o_0 @ R_oi.T)
    f_t = sigm(f(x, h) + p_f * c + i_0 @ R_if.T + f_0 @ R_ff.T + o_0 @ R_of.T)
    c_t = np.tanh(g(x, h)) * i_t + c * f_t
    o_t = sigm(o(x, h) + p_o * c_t + i_0 @ R_io.T + f_0 @ R_fo.T + o_0 @ R_oo.T)
    return np.tanh(c_t) * o_t, c_t, i_t, f_t, o_t


def chaos_free(f_x, i_x, n_x, f_h, i_h, x, h):
    """Laurent & von Brecht 2017, eq. 1: theta * tanh(h) + eta * tanh(W x)."""
    theta, eta = sigm(f_h(h) + f_x(x)), sigm(i_h(h) + i_x(x))
    return theta * np.tanh(h) + eta * np.tanh(n_x(x))


def mut1(z_x, r_x, r_h, n_h, x, added, h):
    """Jozefowicz, Zaremba & Sutskever 2015, section 3.3. Each of z_x and so on is a product of x, or of h."""
    z, r = sigm(z_x(x)), sigm(r_x(x) + r_h(h))
    return np.tanh(n_h(r * h) + np.tanh(added)) * z + h * (1 - z)


def mut2(z_x, n_x, r_h, z_h, n_h, x, added, h):
    """MUT2: the input itself opens the reset gate."""
    z, r = sigm(z_x(x) + z_h(h)), sigm(added + r_h(h))
    return np.tanh(n_h(r * h) + n_x(x)) * z + h * (1 - z)


def mut3(r_x, z_x, n_x, r_h, z_h, n_h, x, h):
    """MUT3: the update gate sees tanh(h)."""
    z, r = sigm(z_x(x) + z_h(np.tanh(h))), sigm(r_x(x) + r_h(h))
    return np.tanh(n_h(r * h) + n_x(x)) * z + h * (1 - z)


def rung_forget(f, g, x, y, c):
    """The survey's first gate on what is remembered, Elman's candidate added; y is what the network shows."""
    c_t = c * sigm(f(x, y)) + np.tanh(g(x, y))
    return np.tanh(c_t), c_t


def rung_input(i, f, g, x, y, c):
    """And a gate on what is let in."""
    c_t = c * sigm(f(x, y)) + sigm(i(x, y)) * np.tanh(g(x, y))
    return np.tanh(c_t), c_t


def highway(W, b, levels, x, s):
    """Zilly et al. 2017, eqs 6-9. W, b: of the input, one for each of h, t (and c); levels: the same of R, a level."""
    for number, level in enumerate(levels):
        z = [s @ R.T + d for R, d in level]
        if number == 0:
            z = [from_s + x @ W_x.T + b_x for from_s, W_x, b_x in zip(z, W, b, strict=True)]
        h, t = np.tanh(z[0]), sigm(z[1])
        carry = sigm(z[2]) if len(z) == 3 else 1 - t
        s = h * t + s * carry
    return s


def mogrify(matrices, x, h):
    """Melis, Kocisky & Blunsom 2020, eqs 1-2: Q_1, R_2, Q_3, ..."""
    for number, matrix in enumerate(matrices, start=1):
        if number % 2 == 1:
            x = 2 * sigm(h @ matrix.T) * x
        else:
            h = 2 * sigm(x @ matrix.T) * h
    return x, h


def jordan(W, W_c, b, x, context, f=np.tanh):
    """Jordan 1986: the context enters the hidden layer."""
    return f(x @ W.T + context @ W_c.T + b)


def reservoir(W_in, W, b, leak, x, s):
    """Jaeger et al. 2007: leaky integrator units."""
    return (1 - leak) * s + leak * np.tanh(x @ W_in.T + s @ W.T + b)
