"""Projections of one matrix after each step: their interface, and those that need little memory between steps.

The nearest matrix with sigma_1 <= limit from all singular values (Kanai's thesis, Algorithm 3.1), the nearest matrix
with orthogonal columns, and spectral normalisation. `subspace` and `truncated` compute fewer singular values.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from elman.learning.projections import ritz, spectral


class Projector(ABC):
    """Brings one matrix back into a set, in place; `computed` singular values in the last call (s of the thesis)."""

    computed: int = 0

    @abstractmethod
    def project_(self, matrix: Tensor) -> None:
        """Change `matrix` [n, m], which may be a view of stacked weights, as little as the set demands."""

    def tensors(self) -> dict[str, Tensor]:
        """The state kept between steps, from which a resumed run continues bit for bit."""
        return {}

    def restore(self, tensors: Mapping[str, Tensor], device: Any) -> None:  # noqa: ARG002
        """Take back what `tensors` returned, onto `device`."""
        assert not tensors

    def counts(self) -> dict[str, int]:
        """The counts of the last call, by name."""
        return {"s": self.computed}


class BySVD(Projector):
    """W = U diag(min(sigma, limit)) V', by a full singular value decomposition (thesis 3.13-3.15)."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        """The nearest feasible matrix in the Frobenius and the trace norm (thesis, Lemma 3.5, 3.18-3.24)."""
        self.computed = len(spectral.bring_down_(matrix, self.limit, spectral.svd_triplets).values)


class ByEigh(BySVD):
    """The same point from the eigenvectors of W'W, at half the cost of the decomposition."""

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        matrix = spectral.tall(matrix)
        self.computed = len(spectral.bring_down_(matrix, self.limit, spectral.exact_triplets).values)


class ToOrthogonal(Projector):
    """The nearest gain * Q with orthonormal columns (or rows, when there are fewer): the polar factor.

    The hard alternative of Arjovsky et al. 2016 and Vorontsov et al. 2017, for real matrices. Nothing is
    reparametrised: any optimiser may step the weights, and the retraction to the nearest point follows.

    After a small step the Newton-Schulz iteration Q <- Q (3 I - Q'Q) / 2 gives it by products alone; it converges
    when ||Q'Q - I||_F < 1, and otherwise the factor comes from the singular value decomposition.
    """

    def __init__(self, gain: float = 1.0, rounds: int = 6) -> None:
        self.gain, self.rounds = gain, rounds

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        matrix = spectral.tall(matrix)
        self.computed = 0
        q = matrix / self.gain
        identity = torch.eye(q.shape[1], dtype=q.dtype, device=q.device)
        near = 1e-6 * q.shape[1] ** 0.5
        for _ in range(self.rounds):
            error = q.t() @ q - identity
            distance = error.norm().item()
            if distance < near or not distance < 0.9:
                break
            q = q - 0.5 * q @ error
        if not distance < 0.9:
            u, values, vh = torch.linalg.svd(q, full_matrices=False)
            self.computed, q = len(values), u @ vh
        matrix.copy_(q * self.gain)


class ToSpectralNorm(Projector):
    """W = bound W / sigma_1 (spectral normalisation, Miyato et al. 2018): all singular values shrink with the largest.

    Sigma_1 is estimated as in the paper by power iteration from the last vectors, here with a block and two rounds,
    after all values of the first matrix. The estimate is from below, so sigma_1 may exceed the bound a little after a
    step into new directions; the projections of `kind = "spectral"` guarantee it. Matrices below the bound are scaled
    up only where `always` is set.
    """

    def __init__(self, bound: float, *, always: bool = True) -> None:
        self.bound, self.always = bound, always
        self.block: Tensor | None = None

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        matrix = spectral.tall(matrix)
        width = min(4, matrix.shape[1])
        even, unit = spectral.scaled(matrix)
        if self.block is None or self.block.shape[0] != matrix.shape[1]:
            values, _, right = spectral.exact_triplets(even)
        else:
            forward = ritz.space_of(even, self.block).forward
            values, space = ritz.ritz(ritz.space_of(even, spectral.orthonormal(forward)))
            right = space.right
        self.computed = len(values)
        self.block = right[:, :width].clone(memory_format=torch.contiguous_format)
        largest = values[0].item()
        if largest > 0 and (self.always or largest * unit > self.bound):
            torch.mul(even, self.bound / largest, out=matrix)

    def tensors(self) -> dict[str, Tensor]:
        return {} if self.block is None else {"block": self.block}

    def restore(self, tensors: Mapping[str, Tensor], device: Any) -> None:
        self.block = tensors["block"].to(device) if tensors else None
