"""Singular values by matrix products: triplets, thin products, bases, and taking large values down.

Matrices are [n, m]; those with n < m are handled as their transpose, which is a view.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from elman.kernels.product import multiply

FAR = 8.0
"""A value so many times as large hides the others: W'W holds them to a share of its square alone."""


class Triplets(NamedTuple):
    """Singular values [k], largest first, left vectors [n, k], right vectors [m, k]."""

    values: Tensor
    left: Tensor
    right: Tensor


def tall(matrix: Tensor) -> Tensor:
    """The matrix or its transpose, a view that has at least as many rows as columns.

    A square matrix is transposed: its columns lie together then, and `gram` need not copy it.
    """
    return matrix.t() if matrix.shape[0] <= matrix.shape[1] else matrix


def gram(matrix: Tensor) -> Tensor:
    """W'W [m, m] of a matrix W [n, m], best with columns that lie together."""
    rows = matrix.t().contiguous()
    return multiply(rows, rows)


def exact_triplets(matrix: Tensor) -> Triplets:
    """All triplets of a tall matrix by eigh(W'W): exact for the large values, which are those that count here."""
    squared = gram(matrix)
    if not squared.isfinite().all():  # entries of 1e19 and more
        return svd_triplets(matrix)
    squares, right = descending(squared)
    values = squares.clamp(min=0).sqrt()
    return Triplets(values, (matrix @ right) / values.clamp(min=torch.finfo(values.dtype).tiny), right)


def descending(symmetric: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues, largest first, and eigenvectors."""
    values, vectors = torch.linalg.eigh(symmetric)
    return values.flip(0), vectors.flip(1)


def svd_triplets(matrix: Tensor) -> Triplets:
    """All triplets by a decomposition, rounded to a share of the largest value and not of its square."""
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    return Triplets(values, left, right.t())


def thin_product(matrix: Tensor, columns: Tensor) -> Tensor:
    """Return matrix [n, m] @ columns [m, k], k small, by the faster kernel for such a shape."""
    return multiply(columns.t(), matrix).t()


def orthonormal(block: Tensor) -> Tensor:
    """An orthonormal basis of the range of a block [m, k]."""
    return torch.linalg.qr(block).Q


def extended(basis: Tensor, more: Tensor) -> Tensor:
    """An orthonormal basis [m, k + j] of the ranges of `basis` [m, k], which is orthonormal, and `more` [m, j]."""
    for _ in range(2):
        more = orthonormal(more - basis @ (basis.t() @ more))
    return torch.cat([basis, more], dim=1)


def take_down_(matrix: Tensor, triplets: Triplets, limit: float) -> int:
    """W -= sum of (sigma_i - limit) u_i v_i' over the values above `limit` (thesis 3.25); how many there were."""
    count = int((triplets.values > limit).sum())
    if count:
        excess = triplets.values[:count] - limit
        matrix.sub_((triplets.left[:, :count] * excess) @ triplets.right[:, :count].t())
    return count


def bring_down_(
    matrix: Tensor, limit: float, find: Callable[[Tensor], Triplets], level: float | None = None
) -> Triplets:
    """Take down the values above `limit` among those that `find` finds, and anew after one that hid the others.

    Args:
        matrix: W [n, m], changed in place.
        limit: see `take_down_`.
        find: gives the largest triplets, all or some.
        level: where the values lie that matter, `limit` by default.

    Returns:
        What was found last, before it was taken down.

    """
    while True:
        top = find(matrix)
        take_down_(matrix, top, limit)
        if not top.values[0].item() > FAR * (limit if level is None else level):
            return top


def sketch(rows: int, columns: int, like: Tensor) -> Tensor:
    """A Gaussian matrix that is always the same: directions to look in, without touching the random state."""
    return _sketch(rows, columns, like.dtype, like.device)


@lru_cache(maxsize=8)
def _sketch(rows: int, columns: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    generator = torch.Generator().manual_seed(rows)
    return torch.randn(rows, columns, generator=generator, dtype=torch.float64).to(device, dtype)
