"""Elman's trajectories: the hidden state along a sentence in the plane of its principal components."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Components(NamedTuple):
    """Principal components of states.

    Attributes:
        mean: of the states, [H].
        axes: the components, [K, H], orthonormal, the largest variance first.
        shares: of the variance that each has, [K].

    """

    mean: Array
    axes: Array
    shares: Array

    def project(self, states: npt.ArrayLike) -> Array:
        """Coordinates [N, K] of states [N, H]."""
        return (np.asarray(states, np.float64) - self.mean) @ self.axes.T


def principal_components(states: Sequence[npt.NDArray[np.floating]], count: int = 4) -> Components:
    """The components of all states together, each array [N, H]; signs are such that the largest weight is positive."""
    together = np.concatenate([np.asarray(one, np.float64) for one in states])
    mean = together.mean(axis=0)
    # Eigenvectors of the covariance [H, H]: there are many more states than units.
    values, vectors = np.linalg.eigh(np.cov((together - mean).T).reshape(len(mean), len(mean)))
    axes = vectors.T[::-1][:count]
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    shares = values[::-1][:count] / max(float(values.sum()), 1e-300)
    return Components(mean, axes * signs[:, None], shares)
