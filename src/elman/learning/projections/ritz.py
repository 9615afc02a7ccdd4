"""A matrix restricted to a few directions: Rayleigh-Ritz, and bounds of the whole from a bound of the rest.

Notation: W [n, m] tall; V [m, k] orthonormal; K = V'W'W V; C = W'W V - V K, the coupling of V to the rest; r a bound of
W on the complement of V. For x = V a + y with y orthogonal to V, ||W x||^2 = a'K a + 2 a'C'y + ||W y||^2, so that
with mu > r^2

    ||W||_2^2 <= mu  if  K + C'C / (mu - r^2) <= mu I    (Schur complement).

Let X hold the eigenvectors of that small matrix and lambda its eigenvalues. W (I - V V') + W V T V' with
T = X min(1, (mu / lambda)^1/2) X' has T K T for K and C T for C, so its eigenvalues are min(lambda, mu): the
decomposition that finds the result proves it feasible. Where C is zero, V X are singular vectors, and the result is the
nearest feasible matrix.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from elman.learning.projections.spectral import FAR, Triplets, descending, extended, thin_product

WIDEST = 0.7
"""The share of all columns above which a space is too large to be worthwhile."""


class Space(NamedTuple):
    """Directions V [m, k], orthonormal, with their images W V [n, k] and W'W V [m, k]."""

    right: Tensor
    image: Tensor
    forward: Tensor

    def grown(self, matrix: Tensor, more: Tensor) -> "Space":
        """A larger space that contains `more` [m, j] too."""
        new = space_of(matrix, extended(self.right, more)[:, self.right.shape[1] :])
        return Space(*(torch.cat(pair, dim=1) for pair in zip(self, new, strict=True)))

    def turned(self, rotation: Tensor) -> "Space":
        """Rotated directions of the same space, or of a part of it."""
        return Space(*(part @ rotation for part in self))

    def coupling(self, values: Tensor) -> Tensor:
        """W'W v_i - sigma_i^2 v_i [m, k] of Ritz vectors: zero for true singular vectors."""
        return self.forward - self.right * values.square()

    def triplets(self, values: Tensor) -> Triplets:
        """Approximate triplets from Ritz vectors."""
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

    The values never exceed the true ones; for a space that contains the top singular vectors they are exact.
    """
    squares, rotation = descending(space.image.t() @ space.image)
    return squares.clamp(min=0).sqrt(), space.turned(rotation)


def schur(space: Space, room: float) -> tuple[Tensor, Tensor, Tensor]:
    """Eigenvalues, largest first, and vectors of K + C'C / room, where K = V'W'W V and C = W'W V - V K, and C [m, k].

    ||W||_2^2 <= mu when none exceeds mu, where room = mu - r^2 > 0 and r bounds W on the complement of V.
    """
    inside = space.image.t() @ space.image
    coupling = torch.addmm(space.forward, space.right, inside, alpha=-1)
    return *descending(inside + coupling.t() @ coupling / room), coupling


class Feasible(NamedTuple):
    """L [n, j] and R [m, j] orthonormal, where L R' was subtracted from W, and how many eigenvalues were computed."""

    left: Tensor
    right: Tensor
    computed: int


def make_feasible_(matrix: Tensor, space: Space, norm: float, tail: float, lag: tuple[float, int]) -> Feasible | None:
    """Bring ||W||_2 to `norm` = mu^1/2 or below, in place, near to the nearest such matrix.

    The space contains the directions whose values exceed `norm`; `tail` = r is below `norm`. `lag` is how far the part
    taken off may be from singular vectors and values, as a norm of parts of W'W, before the space is enlarged, and the
    largest number of rounds.

    None, and W unchanged, when a value is so far above `norm` that rounding hides the others (`spectral.FAR`), or the
    space is too far from singular vectors.
    """
    mu, room, rounds = norm**2, norm**2 - tail**2, 1
    while True:
        squares, vectors, coupling = schur(space, room)
        if len(squares) and not squares[0].item() <= FAR**2 * mu:
            return None
        over = int((squares > mu).sum())
        less = 1 - (mu / squares[:over]).sqrt()
        apart = coupling @ vectors[:, :over]
        astray = torch.cat([apart * less, apart.square().sum(0, keepdim=True) / (2 * room)])
        if over == 0 or astray.norm().item() <= lag[0]:
            break
        if rounds == lag[1] or len(squares) + over > WIDEST * matrix.shape[1]:
            return None
        space, rounds = space.grown(matrix, apart), rounds + 1
    left, right = space.image @ vectors[:, :over] * less, space.right @ vectors[:, :over]
    if over:
        matrix.addmm_(left, right.t(), alpha=-1)
    return Feasible(left, right, len(squares))
