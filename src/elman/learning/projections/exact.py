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
        self.computed = len(spectral.bring_down_(matrix, self.limit, spectral.svd_triplets).values)


class ByEigh(Projector):
    """The same point from the eigenvectors of W'W, at half the cost of the decomposition."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        """The nearest feasible matrix."""
        matrix = spectral.tall(matrix)
        self.computed = len(spectral.bring_down_(matrix, self.limit, spectral.exact_triplets).values)
