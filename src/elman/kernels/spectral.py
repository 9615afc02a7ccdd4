"""Singular values by matrix products: a rigorous bound, Rayleigh-Ritz triplets, and taking large values down.

Matrices are [n, m]; those with n < m are handled as their transpose, which is a view.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

ROUNDING = 1 + 2e-5
"""Room for what float32 products round away."""


class Triplets(NamedTuple):
    """Singular values [k], largest first, left vectors [n, k], right vectors [m, k]."""

    values: Tensor
    left: Tensor
    right: Tensor


def tall(matrix: Tensor) -> Tensor:
    """The matrix or its transpose, a view that has at least as many rows as columns."""
    return matrix.t() if matrix.shape[0] < matrix.shape[1] else matrix


def norm_bound(matrix: Tensor, enough: float = 0.0, squarings: int = 4) -> float:
    """An upper bound of sigma_1 from products alone: ||(W'W)^m||_F^(1/2m) for m = 1, 2, 4, ..., 2^squarings.

    The bound is at most rank^(1/4m) times sigma_1, for the Frobenius norm of (W'W)^m is the 2-norm of the sigma^2m.

    Args:
        matrix: W [n, m].
        enough: stop as soon as the bound is below this.
        squarings: how often the Gram matrix may be squared.

    """
    matrix = tall(matrix)
    bound = matrix.norm().item()
    if bound < enough or bound == 0.0:
        return bound * ROUNDING
    power, m, logarithm = matrix.t() @ matrix, 1, 0.0
    for squaring in range(squarings + 1):
        norm = power.norm().item()
        logarithm += math.log(norm) if norm > 0 else -math.inf
        bound = min(bound, math.exp(logarithm / (2 * m)))
        if bound < enough or norm == 0.0 or squaring == squarings:
            break
        power = power / norm
        power, m, logarithm = power @ power, 2 * m, 2 * logarithm
    return bound * ROUNDING


def exact_triplets(matrix: Tensor) -> Triplets:
    """All triplets of a tall matrix by eigh(W'W): exact for the large values, which are those that count here."""
    squares, right = torch.linalg.eigh(matrix.t() @ matrix)
    values, right = squares.flip(0).clamp(min=0).sqrt(), right.flip(1)
    return Triplets(values, (matrix @ right) / values.clamp(min=torch.finfo(values.dtype).tiny), right)


class Ritz(NamedTuple):
    """Approximate triplets, and W'W times their right vectors [m, k]: where the iteration goes on from."""

    top: Triplets
    forward: Tensor

    @property
    def coupling(self) -> Tensor:
        """W'W v_i - sigma_i^2 v_i [m, k]: zero for true singular vectors."""
        return self.forward - self.top.right * self.top.values.square()


def ritz(matrix: Tensor, start: Tensor) -> Ritz:
    """The best approximate triplets whose right vectors lie in the range of `start` (Rayleigh-Ritz).

    The values never exceed the true ones; for a `start` that holds the top singular vectors they are exact. Two thin
    products, of which the second is also a step of the block power method.

    Args:
        matrix: W [n, m], tall.
        start: [m, k], k < m, columns independent.

    """
    basis = torch.linalg.qr(start).Q
    image = matrix @ basis
    squares, rotation = torch.linalg.eigh(image.t() @ image)
    rotation = rotation.flip(1)
    values = squares.flip(0).clamp(min=0).sqrt()
    left = (image @ rotation) / values.clamp(min=torch.finfo(values.dtype).tiny)
    return Ritz(Triplets(values, left, basis @ rotation), (matrix.t() @ image) @ rotation)


def take_down_(matrix: Tensor, triplets: Triplets, limit: float) -> int:
    """W -= sum of (sigma_i - limit) u_i v_i' over the values above `limit` (thesis 3.25); how many there were."""
    count = int((triplets.values > limit).sum())
    if count:
        excess = triplets.values[:count] - limit
        matrix.sub_((triplets.left[:, :count] * excess) @ triplets.right[:, :count].t())
    return count


def sketch(rows: int, columns: int, like: Tensor) -> Tensor:
    """A Gaussian matrix that is always the same: directions to look in, without touching the random state."""
    generator = torch.Generator().manual_seed(rows)
    return torch.randn(rows, columns, generator=generator, dtype=torch.float64).to(like)
