"""Where a matrix has moved to since a bound of it was proved: the main directions of A = W - W_0, a bound of the rest.

For [V, Q] orthonormal and x = Q a + y orthogonal to V, ||A x|| <= ||A Q||_2 ||a|| + ||A (I - V V' - Q Q')||_F ||y||, so

    ||A (I - V V')||_2 <= (||A Q||_2^2 + ||A (I - V V' - Q Q')||_F^2)^1/2.

Directions along which A is small make the bound tighter by far as part of Q, and cost nothing further there.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from elman.kernels import norms, spectral
from elman.kernels.spectral import thin_product


class Drift(NamedTuple):
    """What is known of A.

    Attributes:
        inside: V [m, k]: P_0 and the directions along which A is large, orthonormal.
        moved: the main directions of A outside P_0 [m, j], with which to begin the next time.
        outside: a bound of ||A (I - V V')||_2.

    """

    inside: Tensor
    moved: Tensor
    outside: float


class Followed(NamedTuple):
    """Which directions of A are followed.

    Attributes:
        most: how many at most.
        probes: how many are looked for anew each time.
        small: what A must do along one for it to be followed on.
        large: what it must do for it to be part of V.

    """

    most: int
    probes: int
    small: float
    large: float


def drift_of(change: Tensor, size: float, known: Tensor, begun: Tensor, followed: Followed) -> Drift:
    """One step of block power iteration on (I - P_0) A'A (I - P_0), and the bound.

    Args:
        change: A [n, m].
        size: ||A||_F.
        known: of P_0 [m, k], orthonormal.
        begun: `moved` of the last time [m, j], j = 0 the first time.
        followed: which directions.

    """
    columns, count = known.shape
    probes = followed.probes if begun.shape[1] else min(followed.most, columns // 8 + 1)
    block = torch.cat([begun, spectral.sketch(columns, probes, change)], dim=1)
    new = thin_product(change.t(), thin_product(change, block - known @ (known.t() @ block)))
    basis = spectral.extended(known, new)
    image = thin_product(change, basis)
    rest, sizes = norms.norm_outside(size, image)
    ahead = sizes[count : count + followed.most]
    on = max(followed.probes, int((ahead > followed.small).sum()))
    large = count + int((ahead > followed.large).sum())
    beside = image[:, large:]
    if beside.shape[1]:
        rest = (torch.linalg.eigvalsh(beside.t() @ beside)[-1].clamp(min=0).item() + rest**2) ** 0.5
    return Drift(basis[:, :large], basis[:, count : count + on], rest)
