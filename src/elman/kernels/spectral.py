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

LOST = 1e-5
"""What a float32 sum of the squares of a matrix may lose, as a share; 5e-6 was seen at 650 x 650."""

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

    One product and one factor, a fifth of the time of the bound ||(W'W)^m||_F^(1/2m) at m = 16, which is no tighter.

    Args:
        matrix: W [n, m].
        at_most: the largest bound that is of use.

    """
    squared = gram(matrix if matrix.shape[0] >= matrix.shape[1] else matrix.t())
    guessed, _ = power(squared, sketch(len(squared), min(PROBES, len(squared)), squared))
    return proved(squared, ABOVE * guessed[0].item(), at_most)


def gram(matrix: Tensor) -> Tensor:
    """W'W [m, m] of a tall matrix W [n, m]."""
    rows = matrix.t().contiguous()
    return multiply(rows, rows)


def power(squared: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """A few steps of the block power method on W'W: its largest singular values, from below, and their vectors [m, k].

    Args:
        squared: W'W [m, m].
        start: [m, k] of any norms.

    """
    block = orthonormal(start)
    for _ in range(POWER_STEPS):
        block = orthonormal(thin_product(squared, block))
    squares, rotation = torch.linalg.eigh(block.t() @ thin_product(squared, block))
    return squares.flip(0).clamp(min=0).sqrt(), block @ rotation.flip(1)


def deflated_(squared: Tensor, block: Tensor) -> Tensor:
    """(I - N N') W'W (I - N N') in place of W'W [m, m], N [m, k] orthonormal."""
    image = thin_product(squared, block)
    image -= block @ (block.t() @ image) / 2
    return squared.addmm_(block, image.t(), alpha=-1).addmm_(image, block.t(), alpha=-1)


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


class Space(NamedTuple):
    """Directions V [m, k], orthonormal, and what W and W'W make of them: W V [n, k], W'W V [m, k]."""

    right: Tensor
    image: Tensor
    forward: Tensor

    def grown(self, matrix: Tensor, more: Tensor) -> "Space":
        """A larger space, which holds `more` [m, j] too."""
        new = space_of(matrix, extended(self.right, more)[:, self.right.shape[1] :])
        return Space(*(torch.cat(pair, dim=1) for pair in zip(self, new, strict=True)))

    def turned(self, rotation: Tensor) -> "Space":
        """Other directions in the same space, or in a part of it."""
        return Space(*(part @ rotation for part in self))

    def coupling(self, values: Tensor) -> Tensor:
        """W'W v_i - sigma_i^2 v_i [m, k] of Ritz vectors: zero for true singular vectors."""
        return self.forward - self.right * values.square()

    def triplets(self, values: Tensor) -> Triplets:
        """Approximate triplets, of Ritz vectors."""
        return Triplets(values, self.image / values.clamp(min=torch.finfo(values.dtype).tiny), self.right)


def space_of(matrix: Tensor, basis: Tensor) -> Space:
    """Two thin products, of which the second is also a step of the block power method.

    Args:
        matrix: W [n, m], tall.
        basis: V [m, k], columns orthonormal.

    """
    image = thin_product(matrix, basis)
    return Space(basis, image, thin_product(matrix.t(), image))


def ritz(space: Space) -> tuple[Tensor, Space]:
    """The best approximate singular values, largest first, and vectors in a space (Rayleigh-Ritz).

    The values never exceed the true ones; for a space that holds the top singular vectors they are exact.
    """
    squares, rotation = torch.linalg.eigh(space.image.t() @ space.image)
    return squares.flip(0).clamp(min=0).sqrt(), space.turned(rotation.flip(1))


def schur(space: Space, room: float) -> tuple[Tensor, Tensor, Tensor]:
    """Eigenvalues, largest first, and vectors of K + C'C / room, where K = V'W'W V and C = W'W V - V K, and C [m, k].

    ||W||_2^2 <= mu when none exceeds mu, where room = mu - r^2 > 0 and W is at most r on what is orthogonal to V.
    """
    inside = space.image.t() @ space.image
    coupling = space.forward - space.right @ inside
    squares, vectors = torch.linalg.eigh(inside + coupling.t() @ coupling / room)
    return squares.flip(0), vectors.flip(1), coupling


def norm_outside(matrix: Tensor, size: float, basis: Tensor) -> tuple[float, Tensor]:
    """An upper bound of ||A (I - V V')||_F for A [n, m], `size` its norm, and V [m, k] orthonormal; ||A v_i|| [k]."""
    whole, inside = size**2 * (1 + LOST), thin_product(matrix, basis).square().sum(0)
    return max(whole - inside.sum().item(), LOST * whole) ** 0.5, inside.sqrt()


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
