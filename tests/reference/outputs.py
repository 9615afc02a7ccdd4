"""Output distributions as the thesis and the papers print them, in NumPy and in the probability domain."""

import numpy as np

RELU_EPSILON = 1e-8
SPHERICAL_EPSILON = 1e-4


def sigm(z):
    return 1 / (1 + np.exp(-z))


G = {
    "softmax": np.exp,
    "sigsoftmax": lambda z: np.exp(z) * sigm(z),  # thesis 4.16
    "sigmoid": sigm,
    "softplus": lambda z: np.log1p(np.exp(z)),
    "relu": lambda z: np.maximum(z, 0) + RELU_EPSILON,  # thesis 4.49, normalised by its own sum
    "spherical": lambda z: z**2 + SPHERICAL_EPSILON,  # de Brebisson & Vincent 2016
    "taylor": lambda z: 1 + z + z**2 / 2,
}


def distribution(activation, z):
    """f_i = g(z_i) / sum_m g(z_m), over the last axis."""
    g = G[activation](z)
    return g / g.sum(-1, keepdims=True)


def sparsemax(z):
    """The simplex's point nearest to z [V] (Martins & Astudillo 2016, algorithm 1), and its tau."""
    falling = sorted(z, reverse=True)
    k = max(k for k in range(1, len(z) + 1) if 1 + k * falling[k - 1] > sum(falling[:k]))
    tau = (sum(falling[:k]) - 1) / k
    return np.array([max(value - tau, 0) for value in z]), tau


def sparsemax_loss(z, y):
    """-z_y + 1/2 sum_{j in S(z)} (z_j^2 - tau^2) + 1/2 (section 3.2), S(z) where p is above 0."""
    p, tau = sparsemax(z)
    return -z[y] + 0.5 * sum(z[j] ** 2 - tau**2 for j in range(len(z)) if p[j] > 0) + 0.5


def one_vs_each(z, y):
    """prod_{m != y} sigm(z_y - z_m), a lower bound of the softmax's p(y) (Titsias 2016, eq. 4)."""
    return np.prod([sigm(z[y] - z[m]) for m in range(len(z)) if m != y])


SLOPE = {
    "softmax": lambda z: np.ones_like(z),  # thesis 2.37
    "sigsoftmax": lambda z: 2 - sigm(z),  # thesis 4.41
    "sigmoid": lambda z: 1 - sigm(z),
    "softplus": lambda z: sigm(z) / np.log1p(np.exp(z)),
    "relu": lambda z: (z > 0) / (np.maximum(z, 0) + RELU_EPSILON),
    "spherical": lambda z: 2 * z / (z**2 + SPHERICAL_EPSILON),
    "taylor": lambda z: (1 + z) / (1 + z + z**2 / 2),
}
"""g'(z) / g(z), the factor that every row of the Jacobian shares (thesis 4.2.3, its slips put right)."""


def log_jacobian(activation, z):
    """d log f_i / d z_j: (1 - f_j) slope_j where i = j, and -f_j slope_j elsewhere; z [V]."""
    f, slope = distribution(activation, z), SLOPE[activation](z)
    jacobian = np.empty((len(z), len(z)))
    for i in range(len(z)):
        for j in range(len(z)):
            jacobian[i, j] = (1 - f[j]) * slope[j] if i == j else -f[j] * slope[j]
    return jacobian


def gated(x, W, b, values):
    """sigm(W_g x + b_g) * values, of the logits or of the last level (Takase, Suzuki & Nagata 2017)."""
    return sigm(W @ x + b) * values


def mixture_contexts(levels, projections, squash=np.tanh):
    """k_s = tanh(W_s h^n + b_s) of one position (Yang et al. 2018, section 3.2; Takase et al. 2018, eq. 11).

    `levels` holds the vectors h^n, `projections` a list of (n, W_s [D, D_n], b_s [D]), one a component.
    """
    return [squash(W @ levels[n] + b) for n, W, b in projections]


def mixture(prior, contexts, W, b, activation):
    """sum_s pi_s f(W k_s + b), of one position (Takase et al. 2018, eqs 7-10)."""
    return sum(pi * distribution(activation, W @ k + b) for pi, k in zip(prior, contexts, strict=True))


def components(values, heads, levels):
    """The prior and the contexts of a mixture, given the arrays of an output layer by name and heads by level."""
    projections = []
    for level, count in heads.items():
        weights = np.split(values[f"contexts.projections.{level}.weight"], count)
        biases = np.split(values[f"contexts.projections.{level}.bias"], count)
        projections += [(level, *pair) for pair in zip(weights, biases, strict=True)]
    prior = distribution("softmax", values["contexts.prior.weight"] @ levels[-1])
    return prior, mixture_contexts(levels, projections)
