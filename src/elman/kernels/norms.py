"""Upper bounds of norms that hold whatever the matrix, at the cost of a product or less."""

import math

import torch
from torch import Tensor

from elman.kernels.product import multiply
from elman.kernels.spectral import descending, gram, orthonormal, sketch, tall, thin_product

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
