"""Spectral normalisation (Miyato et al. 2018): the whole matrix is scaled to a spectral norm."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from elman.learning.projections import ritz, spectral
from elman.learning.projections.projector import Projector


class ToSpectralNorm(Projector):
    """W = bound W / sigma_1: every singular value shrinks with the largest, where a projection leaves the small ones.

    Sigma_1 is estimated as in the paper by power iteration from the last vectors, here with a block and two rounds,
    after all values of the first matrix; an estimate is from below, so sigma_1 may pass the bound a little after a
    step into new directions. The projections by `kind = "spectral"` are the ones that promise.

    Args:
        bound: the norm.
        always: scale up as well; otherwise only what is above the bound is scaled.

    """

    def __init__(self, bound: float, *, always: bool = True) -> None:
        self.bound, self.always = bound, always
        self.block: Tensor | None = None

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        """Scale."""
        matrix = spectral.tall(matrix)
        width = min(4, matrix.shape[1])
        if self.block is None or self.block.shape[0] != matrix.shape[1]:
            values, _, right = spectral.exact_triplets(matrix)
        else:
            forward = ritz.space_of(matrix, self.block).forward
            values, space = ritz.ritz(ritz.space_of(matrix, spectral.orthonormal(forward)))
            right = space.right
        self.computed = len(values)
        self.block = right[:, :width].clone(memory_format=torch.contiguous_format)
        largest = values[0].item()
        if largest > 0 and (self.always or largest > self.bound):
            matrix.mul_(self.bound / largest)

    def tensors(self) -> dict[str, Tensor]:
        """The block of vectors."""
        return {} if self.block is None else {"block": self.block}

    def restore(self, tensors: Mapping[str, Tensor], device: Any) -> None:
        """Take back what `tensors` gave."""
        self.block = tensors["block"].to(device) if tensors else None


# FOLDED learning/projections/orthogonal.py: The hard alternative: a recurrent matrix that stays orthogonal (Arjovsky et al. 2016; Vorontsov et al. 2017).
#
# Complex unitary matrices are not offered; orthogonal ones are the real case. Nothing is reparametrised, so the
# weights
# stay plain values that any optimiser may step, and the step is followed by the retraction to the nearest
# point.
class ToOrthogonal(Projector):
    """The nearest gain * Q with orthonormal columns (or rows, when there are fewer): the polar factor.

    After a small step the Newton-Schulz iteration Q <- Q (3 I - Q'Q) / 2 gives it by products alone; it converges
    when ||Q'Q - I||_F < 1, and otherwise the factor comes from the singular value decomposition.
    """

    def __init__(self, gain: float = 1.0, rounds: int = 6) -> None:
        self.gain, self.rounds = gain, rounds

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        """W = gain * U V'."""
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
