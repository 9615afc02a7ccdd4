"""Singular values by matrix products: a proved bound, Rayleigh-Ritz triplets, and taking large values down.

Matrices are [n, m]; those with n < m are handled as their transpose, which is a view.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from elman.kernels.product import multiply

ROUNDING = 1 + 2e-5
"""Room for what float32 products round away."""

FAR = 8.0
"""A value so many times as large hides the others: W'W holds them to a share of its square alone."""

PROBES, POWER_STEPS, ABOVE = 8, 4, 1.08
"""Columns and steps of the power method by which a norm is guessed, and how far above the guess a proof is tried."""


class Triplets(NamedTuple):
    """Singular values [k], largest first, left vectors [n, k], right vectors [m, k]."""

    values: Tensor
    left: Tensor
    right: Tensor


def tall(matrix: Tensor) -> Tensor:
    """The matrix or its transpose, a view that has at least as many rows as columns."""
    return matrix.t() if matrix.shape[0] < matrix.shape[1] else matrix


def proved_norm(matrix: Tensor, at_most: float) -> float:
    """An upper bound of sigma_1, within a tenth of it, that a Cholesky factor proves; infinity if it is over `at_most`.

    c^2 I - W'W has a Cholesky factor only where it is positive definite, that is where sigma_1 < c. A few steps of the
    block power method say which c to try: they never overestimate, and an estimate that is too low is refused.
    One product and one factor, a fifth of the time of the bound ||(W'W)^m||_F^(1/2m) at m = 16, which is no tighter.
    Rounding, of W'W and of the factor, is what `ROUNDING` makes room for: docs/stability.md says how much there is.

    Args:
        matrix: W [n, m].
        at_most: the largest c that is of use.

    """
    rows = matrix.contiguous() if matrix.shape[0] <= matrix.shape[1] else matrix.t().contiguous()
    gram = multiply(rows, rows)
    block = sketch(len(gram), min(PROBES, len(gram)), gram)
    for _ in range(POWER_STEPS):
        block = orthonormal(thin_product(gram, block))
    likely = ABOVE * thin_product(gram, block).norm(dim=0).max().sqrt().item()
    gap, shift = gram.neg_(), 0.0
    for c in (likely, (likely * at_most) ** 0.5, at_most):
        if c > at_most:
            continue
        gap.diagonal().add_(c**2 - shift)
        shift = c**2
        if torch.linalg.cholesky_ex(gap)[1].item() == 0:
            return c * ROUNDING
    return math.inf


def exact_triplets(matrix: Tensor) -> Triplets:
    """All triplets of a tall matrix by eigh(W'W): exact for the large values, which are those that count here."""
    gram = matrix.t() @ matrix
    if not gram.isfinite().all():  # entries of 1e19 and more
        return svd_triplets(matrix)
    squares, right = torch.linalg.eigh(gram)
    values, right = squares.flip(0).clamp(min=0).sqrt(), right.flip(1)
    return Triplets(values, (matrix @ right) / values.clamp(min=torch.finfo(values.dtype).tiny), right)


def svd_triplets(matrix: Tensor) -> Triplets:
    """All triplets by a decomposition, rounded to a share of the largest value and not of its square."""
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    return Triplets(values, left, right.t())


def thin_product(matrix: Tensor, columns: Tensor) -> Tensor:
    """Return matrix [n, m] @ columns [m, k], k small, by the faster kernel for such a shape."""
    return multiply(columns.t(), matrix).t()


class Ritz(NamedTuple):
    """Approximate triplets, and W'W times their right vectors [m, k]: where the iteration goes on from."""

    top: Triplets
    forward: Tensor

    @property
    def coupling(self) -> Tensor:
        """W'W v_i - sigma_i^2 v_i [m, k]: zero for true singular vectors."""
        return self.forward - self.top.right * self.top.values.square()


def ritz(matrix: Tensor, basis: Tensor) -> Ritz:
    """The best approximate triplets whose right vectors lie in the range of `basis` (Rayleigh-Ritz).

    The values never exceed the true ones; for a `basis` that holds the top singular vectors they are exact. Two thin
    products, of which the second is also a step of the block power method.

    Args:
        matrix: W [n, m], tall.
        basis: [m, k], columns orthonormal.

    """
    image = thin_product(matrix, basis)
    squares, rotation = torch.linalg.eigh(image.t() @ image)
    rotation = rotation.flip(1)
    values = squares.flip(0).clamp(min=0).sqrt()
    left = (image @ rotation) / values.clamp(min=torch.finfo(values.dtype).tiny)
    return Ritz(Triplets(values, left, basis @ rotation), thin_product(matrix.t(), image) @ rotation)


def main_directions(matrix: Tensor, count: int, rest: float) -> tuple[Tensor, Tensor, float]:
    """Orthonormal right directions Q [m, k] that hold most of D [n, m], D Q [n, k], and a bound of ||D (I - Q Q')||_F.

    Args:
        matrix: D.
        count: the largest k.
        rest: k is as small as this bound of the rest allows.

    """
    seen = thin_product(matrix, sketch(matrix.shape[1], count, matrix))
    own = orthonormal(thin_product(matrix.t(), seen))
    image = thin_product(matrix, own)
    squares, rotation = torch.linalg.eigh(image.t() @ image)
    whole = matrix.norm().item() ** 2 * (1 + 1e-6)
    left_out = (whole - squares.flip(0).cumsum(0)).clamp(min=1e-6 * whole)
    kept = min(count, int((left_out > rest**2).sum()) + 1)
    rotation = rotation.flip(1)[:, :kept]
    return own @ rotation, image @ rotation, left_out[kept - 1].item() ** 0.5


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
    generator = torch.Generator().manual_seed(rows)
    return torch.randn(rows, columns, generator=generator, dtype=torch.float64).to(like)
