"""The certificates of docs/stability.md as printed, in NumPy: one unit at a time, gates by their letters."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def norm(matrix):
    return np.linalg.svd(matrix, compute_uv=False)[0]


def tier_1_gru(u, w, b_ih, b_hh, x, h, reset):
    """||K||_2 with K = dn / dh at a fixed point h of the input x."""
    r = sigmoid(w["r"] @ x + b_ih["r"] + u["r"] @ h + b_hh["r"])
    if reset == "after":
        m = u["n"] @ h + b_hh["n"]
        n = np.tanh(w["n"] @ x + b_ih["n"] + r * m)
        return norm(np.diag(1 - n**2) @ (np.diag(r) @ u["n"] + np.diag(m * r * (1 - r)) @ u["r"]))
    n = np.tanh(w["n"] @ x + b_ih["n"] + b_hh["n"] + u["n"] @ (r * h))
    return norm(np.diag(1 - n**2) @ u["n"] @ (np.diag(r) + np.diag(h * r * (1 - r)) @ u["r"]))


def tier_1_lstm(u, w, b_ih, b_hh, x, h, c):
    """||T (1 - f)^-1 M||_2 + ||N||_2."""
    inner = {gate: w[gate] @ x + b_ih[gate] + u[gate] @ h + b_hh[gate] for gate in "ifgo"}
    i, f, o, g = (*(sigmoid(inner[gate]) for gate in "ifo"), np.tanh(inner["g"]))
    t = np.diag(o * (1 - np.tanh(c) ** 2))
    n = np.diag(np.tanh(c) * o * (1 - o)) @ u["o"]
    m = np.diag(c * f * (1 - f)) @ u["f"] + np.diag(g * i * (1 - i)) @ u["i"] + np.diag(i * (1 - g**2)) @ u["g"]
    return norm(t @ np.diag(1 / (1 - f)) @ m) + norm(n)


def tier_2_gru(u, b_hh, low, high, reset):
    """The largest bracket over all units; `low` and `high` bound the input's contribution to each gate."""
    brackets = []
    for j in range(len(b_hh["n"])):
        row = {gate: sum(abs(u[gate][j])) for gate in "rzn"}
        z_least = sigmoid(low["z"][j] + b_hh["z"][j] - row["z"])
        z_most = sigmoid(high["z"][j] + b_hh["z"][j] + row["z"])
        r_most = [sigmoid(high["r"][k] + b_hh["r"][k] + sum(abs(u["r"][k]))) for k in range(len(b_hh["r"]))]
        if reset == "after":
            product = row["n"] + abs(b_hh["n"][j])
            phi = np.tanh(max(abs(low["n"][j]), abs(high["n"][j])) + r_most[j] * product)
            a = r_most[j] * row["n"] + row["r"] * product / 4
        else:
            through = [abs(u["n"][j, k]) * r_most[k] for k in range(len(r_most))]
            phi = np.tanh(max(abs(low["n"][j] + b_hh["n"][j]), abs(high["n"][j] + b_hh["n"][j])) + sum(through))
            a = sum(abs(u["n"][j, k]) * (r_most[k] + sum(abs(u["r"][k])) / 4) for k in range(len(r_most)))
        brackets.append(max(z + (1 - z) * a for z in (z_least, z_most)) + row["z"] * (1 + phi) / 4)
    return max(brackets)


def tier_2_lstm(u, b_hh, low, high):
    """The spectral radius of the 2 x 2 matrix, and the largest |h_j| of each unit."""
    row = {gate: abs(u[gate]).sum(1) for gate in "ifgo"}
    i, f, o = (sigmoid(high[gate] + b_hh[gate] + row[gate]) for gate in "ifo")
    g = np.tanh(np.maximum(abs(low["g"] + b_hh["g"]), abs(high["g"] + b_hh["g"])) + row["g"])
    c = i * g / (1 - f)
    kept, entered = max(f), max(c * row["f"] / 4 + g * row["i"] / 4 + i * row["g"])
    shown = max(np.tanh(c) * row["o"] / 4)
    matrix = np.array([[kept, entered], [max(o) * kept, max(o) * entered + shown]])
    return max(abs(np.linalg.eigvals(matrix))), o * np.tanh(c)
