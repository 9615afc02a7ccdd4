"""Singular values by matrix products: triplets, projections, thin products, and proved upper bounds of norms.

Matrices are [n, m]; those with n < m are handled as their transpose, which is a view.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from elman.network.fast.matmul import multiply

FAR = 8.0
"""A singular value this many times the limit hides the others: W'W is rounded relative to its square."""

ROUNDING = 1 + 2e-5
"""Allowance for the rounding of float32 products."""

LOST = 1e-5
"""The relative error of a float32 sum of the squares of a matrix; 5e-6 was measured at 650 x 650."""

UNITS = 125
"""The largest exponent of a power of two that float32 can divide by and multiply with."""

ORDINARY = 30
"""The largest exponent of the largest entry of a matrix whose products with itself float32 holds."""

PROBES, POWER_STEPS, ABOVE = 8, 4, 1.08
"""Columns and steps of the power method that guesses a norm, and how far above the guess a proof is attempted."""


class Triplets(NamedTuple):
    """Singular values [k], largest first, left vectors [n, k], right vectors [m, k]."""

    values: Tensor
    left: Tensor
    right: Tensor


def tall(matrix: Tensor) -> Tensor:
    """The matrix or its transpose, a view with at least as many rows as columns.

    A square matrix is transposed: its columns are then contiguous, and `gram` need not copy it.
    """
    return matrix.t() if matrix.shape[0] <= matrix.shape[1] else matrix


def gram(matrix: Tensor) -> Tensor:
    """W'W [m, m] of a matrix W [n, m], fastest where its columns are contiguous."""
    rows = matrix.t().contiguous()
    return multiply(rows, rows)


def scaled(matrix: Tensor) -> tuple[Tensor, float]:
    """A matrix divided by a power of two near its largest entry, which is exact, and that power.

    Products of the result with itself neither overflow nor vanish; a matrix whose products do not is left as it is.
    """
    exponent = math.frexp(matrix.abs().max().item())[1]
    if abs(exponent) <= ORDINARY:
        return matrix, 1.0
    unit = 2.0 ** min(max(exponent, -UNITS), UNITS)
    return matrix / unit, unit


def exact_triplets(matrix: Tensor) -> Triplets:
    """All triplets of a tall matrix by eigh(W'W), which is accurate for the large values needed here."""
    matrix, unit = scaled(matrix)
    squares, right = descending(gram(matrix))
    values = squares.clamp(min=0).sqrt()
    return Triplets(values * unit, (matrix @ right) / values.clamp(min=torch.finfo(values.dtype).tiny), right)


def descending(symmetric: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues, largest first, and eigenvectors."""
    values, vectors = torch.linalg.eigh(symmetric)
    return values.flip(0), vectors.flip(1)


def svd_triplets(matrix: Tensor) -> Triplets:
    """All triplets by a singular value decomposition: errors are relative to the largest value, not to its square."""
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


def bring_down_(
    matrix: Tensor, limit: float, find: Callable[[Tensor], Triplets], level: float | None = None
) -> Triplets:
    """W -= sum of (sigma_i - limit) u_i v_i' over the values above `limit` (thesis 3.25), in place.

    `find` computes the largest triplets, all or some. When a very large value, compared with `level` (by default the
    limit), hid others, the rest is found and taken down again. Returns the triplets found last, before they were taken
    down.
    """
    while True:
        top = find(matrix)
        if count := int((top.values > limit).sum()):
            excess = top.values[:count] - limit
            matrix.sub_((top.left[:, :count] * excess) @ top.right[:, :count].t())
        if not top.values[0].item() > FAR * (limit if level is None else level):
            return top


def sketch(rows: int, columns: int, like: Tensor) -> Tensor:
    """A Gaussian matrix, always the same for its size: probe directions that leave the random state untouched."""
    return _sketch(rows, columns, like.dtype, like.device)


@lru_cache(maxsize=8)
def _sketch(rows: int, columns: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    generator = torch.Generator().manual_seed(rows)
    return torch.randn(rows, columns, generator=generator, dtype=torch.float64).to(device, dtype)


def proved_norm(matrix: Tensor, at_most: float) -> float:
    """An upper bound of sigma_1, within a tenth of it, proved by a Cholesky factor; infinity if above `at_most`.

    One product and one factor take a fifth of the time of the bound ||(W'W)^m||_F^(1/2m) at m = 16, no tighter.
    """
    squared = gram(tall(matrix))
    guessed, _ = power(squared, sketch(len(squared), min(PROBES, len(squared)), squared))
    return proved(squared, ABOVE * guessed[0].item(), at_most)


def power(squared: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Lower estimates of the largest singular values, and vectors [m, k], by the block power method.

    It is given W'W [m, m] and the first block [m, k], of any norms.
    """
    block = orthonormal(start)
    for _ in range(POWER_STEPS):
        block = orthonormal(thin_product(squared, block))
    squares, rotation = descending(block.t() @ thin_product(squared, block))
    return squares.clamp(min=0).sqrt(), block @ rotation


def deflated_(squared: Tensor, block: Tensor) -> Tensor:
    """Replace W'W [m, m] by (I - N N') W'W (I - N N'), N [m, k] orthonormal."""
    if block.shape[1] == 0:
        return squared
    image = thin_product(squared, block)
    image -= block @ (block.t() @ image) / 2
    return squared.sub_(multiply(torch.cat([block, image], dim=1), torch.cat([image, block], dim=1)))


def proved(squared: Tensor, likely: float, at_most: float) -> float:
    """An upper bound of sigma_1 proved by a Cholesky factor, `likely` if possible; infinity if none is found.

    c^2 I - W'W has a Cholesky factor only where it is positive definite, that is where sigma_1 < c. The guess need not
    be trusted: if it is too low the factorisation fails, and a value in the middle is tried, then `at_most`, the
    largest useful c. `ROUNDING` allows for the rounding of W'W and of the factor
    (results/spectral-projection.md). W'W [m, m] is overwritten.
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
    """An upper bound of ||A (I - V V')||_F, and ||A v_i|| [k], from ||A||_F and A V [n, k], V [m, k] orthonormal."""
    whole, inside = size**2 * (1 + LOST), image.square().sum(0)
    return max(whole - inside.sum().item(), LOST * whole) ** 0.5, inside.sqrt()
