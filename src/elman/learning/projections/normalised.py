"""Spectral normalisation (Miyato et al. 2018): the whole matrix is scaled to a spectral norm."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from elman.kernels import ritz, spectral
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
