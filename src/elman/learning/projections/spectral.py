"""Singular values by matrix products: triplets, thin products, bases, and taking large values down.

Matrices are [n, m]; those with n < m are handled as their transpose, which is a view.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from elman.network.kernels.matmul import multiply

# FOLDED kernels/norms.py: Upper bounds of norms that hold whatever the matrix, at the cost of a product or less.
ROUNDING = 1 + 2e-5
"""Room for what float32 products round away."""

LOST = 1e-5
"""What a float32 sum of the squares of a matrix may lose, as a share; 5e-6 was seen at 650 x 650."""

PROBES, POWER_STEPS, ABOVE = 8, 4, 1.08
"""Columns and steps of the power method by which a norm is guessed, and how far above the guess a proof is tried."""


def proved_norm(matrix: Tensor, at_most: float) -> float:
    """An upper bound of sigma_1, within a tenth of it, that a Cholesky factor proves; infinity if it is over `at_most`.

    One product and one factor, a fifth of the time of the bound ||(W'W)^m||_F^(1/2m) at m = 16, which is no tighter.

    Args:
        matrix: W [n, m].
        at_most: the largest bound that is of use.

    """
    squared = gram(tall(matrix))
    guessed, _ = power(squared, sketch(len(squared), min(PROBES, len(squared)), squared))
    return proved(squared, ABOVE * guessed[0].item(), at_most)


def power(squared: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """A few steps of the block power method on W'W: its largest singular values, from below, and their vectors [m, k].

    Args:
        squared: W'W [m, m].
        start: [m, k] of any norms.

    """
    block = orthonormal(start)
    for _ in range(POWER_STEPS):
        block = orthonormal(thin_product(squared, block))
    squares, rotation = descending(block.t() @ thin_product(squared, block))
    return squares.clamp(min=0).sqrt(), block @ rotation


def deflated_(squared: Tensor, block: Tensor) -> Tensor:
    """(I - N N') W'W (I - N N') in place of W'W [m, m], N [m, k] orthonormal."""
    if block.shape[1] == 0:
        return squared
    image = thin_product(squared, block)
    image -= block @ (block.t() @ image) / 2
    return squared.sub_(multiply(torch.cat([block, image], dim=1), torch.cat([image, block], dim=1)))


def proved(squared: Tensor, likely: float, at_most: float) -> float:
    """An upper bound of sigma_1 that a Cholesky factor proves, `likely` if it is one; infinity if none is found.

    c^2 I - W'W has a Cholesky factor only where it is positive definite, that is where sigma_1 < c: a guess that is too
    low is refused, and one in the middle is tried, then `at_most`. Rounding, of W'W and of the factor, is what
    `ROUNDING` makes room for: docs/stability.md says how much there is.

    Args:
        squared: W'W [m, m], lost.
        likely: the c to be tried first.
        at_most: the largest c that is of use.

    """
    gap, shift = squared.neg_(), 0.0
    for c in (likely, (likely * at_most) ** 0.5, at_most):
        if c > at_most:
            continue
        gap.diagonal().add_(c**2 - shift)
        shift = c**2
        if torch.linalg.cholesky_ex(gap)[1].item() == 0:
            return c * ROUNDING
    return math.inf


def norm_outside(size: float, image: Tensor) -> tuple[float, Tensor]:
    """An upper bound of ||A (I - V V')||_F, and ||A v_i|| [k].

    Args:
        size: ||A||_F.
        image: A V [n, k], V [m, k] orthonormal.

    """
    whole, inside = size**2 * (1 + LOST), image.square().sum(0)
    return max(whole - inside.sum().item(), LOST * whole) ** 0.5, inside.sqrt()


# TARGET
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
