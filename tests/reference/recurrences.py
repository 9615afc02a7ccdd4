"""Linear and extended recurrences as their papers print them, in NumPy; vectors are rows of a batch.

W are matrices [out, in], b vectors; a state is a tuple whose first part is the output.
"""

import numpy as np


def sigm(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(x))


def silu(x):
    return x * sigm(x)


def gelu(x):
    """The approximation by tanh of the published code of Griffin."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def positive(v):
    """g of Feng et al. 2024, appendix B."""
    return np.where(v >= 0, v + 0.5, sigm(v))


def min_gru(W_z, b_z, W_h, b_h, x, h):
    """Feng, Tung, Ahmed, Bengio & Hajimirsadeghi 2024, section 3.1: (1 - z) h + z h~."""
    z = sigm(x @ W_z.T + b_z)
    return ((1 - z) * h + z * positive(x @ W_h.T + b_h),)


def min_lstm(W_f, b_f, W_i, b_i, W_h, b_h, x, h):
    """Section 3.2: f' = f / (f + i), i' = i / (f + i)."""
    f, i = sigm(x @ W_f.T + b_f), sigm(x @ W_i.T + b_i)
    return (f / (f + i) * h + i / (f + i) * positive(x @ W_h.T + b_h),)


def qrnn(now, before, b, x, x_before, c):
    """Bradbury et al. 2017, eqs 1, 2 and 4; `now` and `before` are the weights of z, f, o at the two places."""
    z, f, o = (x @ W.T + x_before @ V.T + d for W, V, d in zip(now, before, b, strict=True))
    c = sigm(f) * c + (1 - sigm(f)) * np.tanh(z)
    return sigm(o) * c, c


def sru(W, W_f, W_r, b, b_f, b_r, v_f, v_r, skip, bias, x, c):
    """Lei et al. 2018, eqs 1-4; b_r begins at `bias`, and alpha = sqrt(1 + 2 exp(bias)); `skip` is x or W_h x."""
    f = sigm(x @ W_f.T + v_f * c + b_f)
    r = sigm(x @ W_r.T + v_r * c + (b_r + bias))
    new = f * c + (1 - f) * (x @ W.T + b)
    return r * new + (1 - r) * skip * np.sqrt(1 + 2 * np.exp(bias)), new


def lru(nu, theta, gamma, B, C, D, b, x, s):
    """Orvieto et al. 2023, appendix A: complex s; B [n, I], C [H, n]."""
    s = np.exp(-np.exp(nu) + 1j * np.exp(theta)) * s + np.exp(gamma) * (x @ B.T)
    return (s @ C.T).real + x @ D.T + b, s


def blocks(W, x):
    """Blocks W [heads, d', d] on a diagonal."""
    return np.concatenate([part @ w.T for part, w in zip(np.split(x, len(W), axis=1), W, strict=True)], axis=1)


def convolution(kernel, window):
    """sum_k kernel[:, k] window[k]: window [K, B, C], oldest first."""
    return sum(kernel[:, k] * inputs for k, inputs in enumerate(window))


def rg_lru(W_r, b_r, W_i, b_i, lam, u, s, first):
    """De et al. 2024, eqs 1-4, c = 8; u enters whole at the first step."""
    r, i = sigm(blocks(W_r, u) + b_r), sigm(blocks(W_i, u) + b_i)
    a = sigm(-lam) ** (8 * r)
    return a * s + (1.0 if first else np.sqrt(1 - a**2)) * (i * u)


def log_sigm(x):
    return -softplus(-x)


def slstm(i, f, z, o, exponential, c, n):
    """Beck et al. 2024, eqs 8-14 without the stabiliser: raw gates, and the unscaled c and n."""
    c = (np.exp(f) if exponential else sigm(f)) * c + np.exp(i) * np.tanh(z)
    n = (np.exp(f) if exponential else sigm(f)) * n + np.exp(i)
    return sigm(o) * c / n, c, n


def mlstm_head(q, k, v, i, f, C, n):
    """Eqs 19-27 without the stabiliser, for one head of one sequence: C [d, d] holds v k', and the output h~."""
    k = k / np.sqrt(len(k))
    C = sigm(f) * C + np.exp(i) * np.outer(v, k)
    n = sigm(f) * n + np.exp(i) * k
    return C @ q / max(abs(n @ q), 1.0), C, n


def ssd_head(x, B, C, step, A, skip, S):
    """Dao & Gu 2024, eq. 1 with a scalar A < 0, for one head of one sequence: S [n, d]."""
    S = np.exp(step * A) * S + np.outer(B, step * x)
    return C @ S + skip * x, S


def delta_head(q, k, v, beta, g, S):
    """Yang, Kautz & Hatamizadeh 2024, eq. 10, S [d_v, d_k]: S (e^g (I - beta k k')) + beta v k'."""
    S = S @ (np.exp(g) * (np.eye(len(k)) - beta * np.outer(k, k))) + beta * np.outer(v, k)
    return S @ q / np.sqrt(len(q)), S


def rwkv7_head(r, w, k, v, kappa, a, S):
    """Peng et al. 2025, eq. 17, S [d_v, d_k]: S (diag(w) - kappa' (a kappa)) + v' k, read by r."""
    S = S @ (np.diag(w) - np.outer(kappa, a * kappa)) + np.outer(v, k)
    return S @ r, S


def rms_norm(x, epsilon=1e-5):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon)


def norm(x, epsilon=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)


def attention_head(q, keys, values, t, places):
    """Vaswani et al. 2017, eq. 1, with the rotations of Su et al. 2021, eq. 16, written as complex numbers.

    q [d] at time t looks at keys [P, d] at the times `places` [P].
    """
    half = len(q) // 2
    rates = 10000.0 ** (-np.arange(half) / half)
    one = (q[:half] + 1j * q[half:]) * np.exp(1j * t * rates)
    others = (keys[:, :half] + 1j * keys[:, half:]) * np.exp(1j * np.outer(places, rates))
    scores = np.exp((others.conj() @ one).real / np.sqrt(len(q)))
    return scores / scores.sum() @ values
