"""The nearest matrix with sigma_1 <= limit at the cost of a few thin products, proved each time.

Notation: W [n, m] tall; W_0 what it was when a bound was last proved, ||W_0 (I - P_0)||_2 <= r_0 for a projector P_0 of
few dimensions; A = W - W_0 all that steps and projections have done since; V [m, k] orthonormal, P = V V' containing
P_0. Outside V

    ||W (I - P)||_2 <= r = r_0 + ||A (I - P)||_F.

With that, what is above the limit is taken down and the result is proved, by one small matrix (`kernels.ritz`).

V is P_0, the main right directions of A, and what W'W makes of the directions that were largest before. When r has come
near the limit, the directions near it become P_0 and r_0 is proved anew by a Cholesky factor. When that does not help,
or a value is so far above the limit that rounding hides the others, all singular values are computed: whatever the
optimiser does, the result is feasible. docs/stability.md says what rounding has to do with it.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from elman.kernels import norms, ritz, spectral
from elman.kernels.ritz import Space
from elman.kernels.spectral import thin_product
from elman.learning.projections.projector import Projector

ABOVE = 1.04
"""How far above the guess of a norm its proof is tried: the guess begins with Ritz vectors, so it is good."""


class Reference(NamedTuple):
    """What is remembered from one call to the next.

    Attributes:
        matrix: W_0 [n, m].
        basis: of P_0 [m, k].
        bounds: of ||W_0||_2 and r_0, float64.
        left: W as it was last left [n, m].
        top: its largest right singular vectors, about [m, j].
        moved: the main right directions of A, about [m, j]; none when A is new.

    """

    matrix: Tensor
    basis: Tensor
    bounds: Tensor
    left: Tensor
    top: Tensor
    moved: Tensor


class BySubspace(Projector):
    """Schur complements in a space that follows W.

    Args:
        limit: the bound on sigma_1.
        tolerance: how far above it the certificate may lie, as a share of it.
        near: the share of the limit from which on a value is followed when a bound is proved.
        crowd: the share of all columns from which on so many values are near that only the nearest are followed, and
            from which on so many are followed that all are computed at once.
        room: the least share of limit^2 by which r^2 stays below it.
        moved: how many directions of A are followed at most, and how many are looked for anew at each step.
        small: the share of the limit by which A must move such a direction for it to be followed on.
        top: how many of the largest directions begin the next step.
        lag: how far what is taken off may be from singular vectors, as a share of limit^2, before another round of
            at most so many.

    """

    def __init__(
        self,
        limit: float,
        *,
        tolerance: float = 3e-5,
        near: float = 0.77,
        crowd: tuple[float, float] = (0.08, 0.25),
        room: float = 0.08,
        moved: tuple[int, int] = (16, 2),
        small: float = 0.01,
        top: int = 8,
        lag: tuple[float, int] = (0.012, 4),
    ) -> None:
        self.limit, self.accepted = limit, limit * (1 + tolerance)
        self.near, self.crowd, self.moved, self.top = near * limit, crowd, moved, top
        self.small = small * limit
        self.lag = lag
        self.widest_tail = limit * (1 - room) ** 0.5
        self.reference: Reference | None = None

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        """The nearest feasible matrix, up to the angle by which the vectors followed lag behind."""
        matrix = spectral.tall(matrix)
        self.computed = 0
        if self.reference is None or self.reference.matrix.shape != matrix.shape:
            self._project_exactly(matrix)
            return
        if torch.equal(matrix, self.reference.left):
            return
        drift = matrix - self.reference.matrix
        size = drift.norm().item()
        if self.reference.bounds[0].item() + size <= self.accepted:
            return
        if size == math.inf or not self._project_by_subspace(matrix, drift, size):
            self._project_exactly(matrix)

    def _project_by_subspace(self, matrix: Tensor, drift: Tensor, size: float) -> bool:
        """Whether a certificate was found; if not, the matrix is as it was."""
        assert self.reference is not None
        known = self.reference.basis.shape[1]
        if known > self.crowd[1] * matrix.shape[1]:
            return False
        new = self._directions(matrix, drift)
        if known + new.shape[1] > ritz.WIDEST * matrix.shape[1]:
            return False
        space = ritz.space_of(matrix, spectral.extended(self.reference.basis, new))
        outside, sizes = norms.norm_outside(drift, size, space.right)
        moved = space.right[:, known : known + self._followed(sizes[known:])]
        tail = (self.reference.bounds[1].item() + outside) * norms.ROUNDING
        basis = None
        if tail > self.widest_tail:
            space, basis, tail = self._renewed(matrix, space)
        if tail > self.widest_tail:
            return False
        done = ritz.make_feasible_(matrix, space, self.accepted, tail, self.lag, self.top)
        if done is None:
            return False
        self.computed = done.computed
        if basis is None:
            self.reference = self.reference._replace(left=_own(matrix), top=_own(done.right), moved=_own(moved))
        else:
            tail += norms.norm_outside(done.less, done.less.norm().item(), basis)[0]
            self.reference = _reference(matrix, basis, (self.accepted, tail), done.right)
        return True

    def _directions(self, matrix: Tensor, drift: Tensor) -> Tensor:
        """What to add to P_0 [m, j]: first the main directions of A (I - P_0), then what W'W makes of others."""
        assert self.reference is not None
        known, top, begun = self.reference.basis, self.reference.top, self.reference.moved
        probes = self.moved[1] if begun.shape[1] else min(self.moved[0], matrix.shape[1] // 8 + 1)
        block = torch.cat([begun, spectral.sketch(len(begun), probes, matrix)], dim=1)
        seen = thin_product(drift, block - known @ (known.t() @ block))
        turned = thin_product(matrix.t(), thin_product(matrix, top))
        return torch.cat([thin_product(drift.t(), seen), turned], dim=1)

    def _followed(self, sizes: Tensor) -> int:
        """How many directions of A go on to the next step: those along which it is not small."""
        most = min(self.moved[0], len(sizes))
        return max(self.moved[1], int((sizes[:most] > self.small).sum()))

    def _renewed(self, matrix: Tensor, space: Space) -> tuple[Space, Tensor, float]:
        """A space that contains a new P_0, the basis of it, and r_0.

        P_0 is of the directions near the limit, with those that only show when the others are taken away.
        """
        values, found = ritz.ritz(space)
        over = int((values > self.limit).sum())
        if over and len(values) + over <= ritz.WIDEST * matrix.shape[1]:
            values, found = ritz.ritz(found.grown(matrix, found.coupling(values)[:, :over]))
        few = self._near(values, matrix.shape[1])
        right = found.right[:, :few]
        squared = norms.gram(torch.addmm(matrix, found.image[:, :few], right.t(), alpha=-1))
        guessed, block = norms.power(squared, found.right[:, few : few + norms.PROBES])
        crowded = few < int((values > self.near).sum())
        shown = 0 if crowded else int((guessed > self.near).sum())
        likely = ABOVE * guessed[min(shown, len(guessed) - 1)].item()
        tail = norms.proved(norms.deflated_(squared, block[:, :shown]), likely, self.limit)
        return found.grown(matrix, block[:, :shown]), spectral.extended(right, block[:, :shown]), tail

    def _project_exactly(self, matrix: Tensor) -> None:
        top = spectral.bring_down_(matrix, self.limit, spectral.exact_triplets)
        values = top.values.clamp(max=self.limit)
        self.computed = len(values)
        few = self._near(values, len(values))
        norm, *rest = (values[place].item() * norms.ROUNDING for place in (0, few) if place < len(values))
        bounds = norm, rest[0] if rest else 0.0
        self.reference = _reference(matrix, top.right[:, :few], bounds, top.right[:, : self.top])

    def _near(self, values: Tensor, columns: int) -> int:
        """How many values are near the limit; when that is a crowd, as of an orthogonal matrix, those nearer to it."""
        few, middle = int((values > self.near).sum()), (self.near + self.limit) / 2
        return few if few <= max(4, self.crowd[0] * columns) else max(4, int((values > middle).sum()))

    def tensors(self) -> dict[str, Tensor]:
        """The reference."""
        return {} if self.reference is None else dict(self.reference._asdict())

    def restore(self, tensors: Mapping[str, Tensor], device: Any) -> None:
        """Take back what `tensors` gave."""
        held = {name: tensor if name == "bounds" else tensor.to(device) for name, tensor in tensors.items()}
        self.reference = Reference(**held) if set(held) == set(Reference._fields) else None


def _reference(matrix: Tensor, basis: Tensor, bounds: tuple[float, float], top: Tensor) -> Reference:
    proved = torch.tensor(bounds, dtype=torch.float64)
    return Reference(_own(matrix), _own(basis), proved, _own(matrix), _own(top), _own(basis[:, :0]))


def _own(tensor: Tensor) -> Tensor:
    """A copy whose layout does not depend on where it came from: a resumed run multiplies in the same order."""
    return tensor.clone(memory_format=torch.contiguous_format)
