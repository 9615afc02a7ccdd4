"""What is done to one matrix after each step, and what it remembers from one step to the next."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from elman.learning.projections import spectral


class Projector(ABC):
    """Brings one matrix back into a set, in place.

    Attributes:
        computed: how many singular values the last call computed (s of the thesis).

    """

    computed: int = 0

    @abstractmethod
    def project_(self, matrix: Tensor) -> None:
        """Change `matrix` [n, m], which may be a view of stacked weights, as little as the set demands."""

    def tensors(self) -> dict[str, Tensor]:
        """What must be saved so that a resumed run goes on bit for bit."""
        return {}

    def restore(self, tensors: Mapping[str, Tensor], device: Any) -> None:  # noqa: ARG002
        """Take back what `tensors` gave, onto `device`."""
        assert not tensors

    def counts(self) -> dict[str, int]:
        """What the last call counted, by name."""
        return {"s": self.computed}


# FOLDED learning/projections/exact.py: The nearest matrix with sigma_1 <= limit, from all its singular values (Kanai's thesis, Algorithm 3.1).
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
