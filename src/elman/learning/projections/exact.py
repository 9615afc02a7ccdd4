"""The nearest matrix with sigma_1 <= limit, from all its singular values (Kanai's thesis, Algorithm 3.1)."""

import torch
from torch import Tensor

from elman.kernels import spectral
from elman.learning.projections.projector import Projector


class BySVD(Projector):
    """W = U diag(min(sigma, limit)) V', by a full singular value decomposition (thesis 3.13-3.15)."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        """The nearest feasible matrix in the Frobenius and the trace norm (thesis, Lemma 3.5, 3.18-3.24)."""
        u, values, vh = torch.linalg.svd(matrix, full_matrices=False)
        self.computed = len(values)
        spectral.take_down_(matrix, spectral.Triplets(values, u, vh.t()), self.limit)


class ByEigh(Projector):
    """The same point from the eigenvectors of W'W, at half the cost of the decomposition."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        """The nearest feasible matrix."""
        matrix = spectral.tall(matrix)
        self.computed = matrix.shape[1]
        spectral.take_down_(matrix, spectral.exact_triplets(matrix), self.limit)
