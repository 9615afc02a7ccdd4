"""Residual blocks around a recurrent layer, in NumPy; vectors are rows."""

import math

import numpy as np


def rms_norm(x, scale, epsilon=1e-6):
    """Zhang & Sennrich 2019, eq. 4."""
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * scale


def layer_norm(x, scale, shift, epsilon=1e-5):
    """Ba, Kiros & Hinton 2016, eq. 3."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * scale + shift


def gelu(x):
    """x P(N(0, 1) < x) (Hendrycks & Gimpel 2016)."""
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def feed_forward(into, out, x):
    return gelu(x @ into.T) @ out.T


def gated(into, out, x):
    """Shazeer 2020, eq. 6, GEGLU."""
    gate, value = np.split(into, 2)
    return (gelu(x @ gate.T) * (x @ value.T)) @ out.T
