"""The nearest matrix with sigma_1 <= limit at the cost of a few thin products, with a proof at every call.

Notation: W [n, m] tall; W_0 its value when a bound was last proved, ||W_0 (I - P_0)||_2 <= r_0 for a projector P_0 of
few dimensions; A = W - W_0 the change since, by steps and projections; V [m, k] orthonormal, P = V V' containing P_0.
Outside V

    ||W (I - P)||_2 <= r = r_0 + ||A (I - P)||_2.

With this bound, values above the limit are lowered and the result is proved, by one small matrix (`ritz`).

V spans P_0 and the directions along which A is large. The rest of A is bounded as follows: for [V, Q] orthonormal and
x = Q a + y orthogonal to V, ||A x|| <= ||A Q||_2 ||a|| + ||A (I - V V' - Q Q')||_F ||y||, so

    ||A (I - V V')||_2 <= (||A Q||_2^2 + ||A (I - V V' - Q Q')||_F^2)^1/2,

where directions along which A is small belong to Q: they make the bound much tighter and add no further cost.

When r approaches the limit, or V is too far from singular vectors, the directions near the limit become P_0 and r_0 is
proved again by a Cholesky factor. When that does not help, or a value is so far above the limit that rounding hides the
others, all singular values are computed: whatever the optimiser does, the result is feasible. docs/stability.md treats
the effect of rounding.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from elman.learning.projections import ritz, spectral
from elman.learning.projections.projector import Projector
from elman.learning.projections.ritz import Feasible, Space
from elman.learning.projections.spectral import gram, thin_product

ABOVE, ROUNDS = 1.04, 2
"""How far above the guess of r_0 its proof is attempted; how often (W'W)^2 is applied to the directions for it."""

CLEAR = 2.0
"""The share of the limit up to which the largest values may be deflated in W'W itself without rounding the rest."""


TOLERANCE, NEAR, ROOM = 3e-5, 0.77, 0.05
"""Shares of the limit: how far above it the certificate may lie, and above which share a value is followed when a bound
is proved; and the least share of limit^2 by which r^2 stays below it."""

CROWD = (0.08, 0.25)
"""Shares of all columns: with more values near the limit only the nearest are followed, and with more followed all are
computed at once."""

LAG = (8e-4, 4)
"""How far the part taken off may be from singular vectors and values, as a share of limit * ||W||_F, before another
round, and the largest number of rounds."""


class Followed(NamedTuple):
    """Which directions of A are followed: at most `most` in all, `probes` new ones sought at each call.

    A direction v is followed further where ||A v|| is above `small`, and becomes part of V above `large`; the defaults
    are shares of the limit.
    """

    most: int = 20
    probes: int = 2
    small: float = 0.02
    large: float = 0.05


class Drift(NamedTuple):
    """The main directions of A: V [m, k], those outside P_0 [m, j] for the next call, a bound of ||A (I - V V')||_2."""

    inside: Tensor
    moved: Tensor
    outside: float


def drift_of(change: Tensor, size: float, known: Tensor, begun: Tensor, followed: Followed) -> Drift:
    """One step of block power iteration on (I - P_0) A'A (I - P_0), and the bound.

    A is [n, m], `size` its Frobenius norm, `known` the basis [m, k] of P_0, orthonormal, and `begun` the `moved` of the
    last call [m, j], j = 0 at the first.
    """
    columns, count = known.shape
    probes = followed.probes if begun.shape[1] else min(followed.most, columns // 8 + 1)
    block = torch.cat([begun, spectral.sketch(columns, probes, change)], dim=1)
    new = thin_product(change.t(), thin_product(change, block - known @ (known.t() @ block)))
    basis = spectral.extended(known, new)
    image = thin_product(change, basis)
    rest, sizes = spectral.norm_outside(size, image)
    ahead = sizes[count : count + followed.most]
    on = max(followed.probes, int((ahead > followed.small).sum()))
    large = count + int((ahead > followed.large).sum())
    beside = image[:, large:]
    if beside.shape[1]:
        rest = (torch.linalg.eigvalsh(beside.t() @ beside)[-1].clamp(min=0).item() + rest**2) ** 0.5
    return Drift(basis[:, :large], basis[:, count : count + on], rest)


class Reference(NamedTuple):
    """The state kept from one call to the next.

    Attributes:
        matrix: W_0 [n, m].
        basis: of P_0 [m, k].
        figures: a bound of ||W_0||_2, r_0, ||W_0||_F, the number of steps in A, and the last bound of ||A (I - P)||_2;
            float64 [5].
        left: W after the last call [n, m].
        moved: the main right directions of A, about [m, j]; none when A is new.
    """

    matrix: Tensor
    basis: Tensor
    figures: Tensor
    left: Tensor
    moved: Tensor


class BySubspace(Projector):
    """Schur complements in a space that follows W, for sigma_1 <= `limit`."""

    def __init__(self, limit: float) -> None:
        self.limit, self.accepted = limit, limit * (1 + TOLERANCE)
        self.near, self.widest_tail = NEAR * limit, limit * (1 - ROOM) ** 0.5
        shares = Followed()
        self.followed = shares._replace(small=shares.small * limit, large=shares.large * limit)
        self.reference: Reference | None = None

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        """Replace W by the nearest feasible matrix, up to the angle by which the followed vectors lag behind."""
        matrix = spectral.tall(matrix)
        self.computed = 0
        known = self.reference
        if known is None or known.matrix.shape != matrix.shape:
            self._project_exactly(matrix)
            return
        if torch.equal(matrix, known.left):
            return
        if not (self._project_by_drift(matrix, known) or self._project_anew(matrix, known)):
            self._project_exactly(matrix)

    def _project_by_drift(self, matrix: Tensor, known: Reference) -> bool:
        """Project with the bound proved last; false, and the matrix unchanged, where that bound no longer suffices."""
        norm, bound, _, steps, before = known.figures.tolist()
        expected = before * (1 + 1 / max(steps, 1)) ** 0.7  # its typical growth
        if bound + expected > self.widest_tail:
            return False
        change = matrix - known.matrix
        size = change.norm().item()
        if norm + size <= self.accepted:
            return True
        if size == math.inf or self._crowded(known):
            return False
        drift = drift_of(change, size, known.basis, known.moved, self.followed)
        tail = (bound + drift.outside) * spectral.ROUNDING
        if tail > self.widest_tail or self._too_wide(drift.inside):
            return False
        if self._make_feasible_(matrix, ritz.space_of(matrix, drift.inside), tail) is None:
            return False
        figures = torch.cat([known.figures[:3], known.figures.new_tensor([steps + 1, drift.outside])])
        self.reference = known._replace(figures=figures, left=_own(matrix), moved=_own(drift.moved))
        return True

    def _project_anew(self, matrix: Tensor, known: Reference) -> bool:
        """Project with a new r_0 for the directions now near the limit; false where none could be proved."""
        if self._crowded(known):
            return False
        probes = spectral.sketch(len(known.basis), spectral.PROBES, matrix)
        block = torch.cat([known.basis, known.moved, probes], dim=1)
        if self._too_wide(block):
            return False
        squared = gram(matrix)
        if not squared.diagonal().isfinite().all():
            return False
        for _ in range(ROUNDS):
            block = spectral.orthonormal(thin_product(squared, thin_product(squared, block)))
        space = ritz.space_of(matrix, block)
        values, found = ritz.ritz(space)
        few = self._near(values, matrix.shape[1])
        basis, image = found.right[:, :few], found.image[:, :few]
        if values[0] <= CLEAR * self.limit:
            squared = spectral.deflated_(squared, basis)
        else:
            squared = gram(torch.addmm(matrix.t(), basis, image.t(), alpha=-1).t())
        tail = spectral.proved(squared, ABOVE * values[min(few, len(values) - 1)].item(), self.widest_tail)
        if tail > self.widest_tail:
            return False
        done = self._make_feasible_(matrix, space, tail)
        if done is None:
            return False
        tail += spectral.norm_outside(done.left.norm().item(), done.left @ (done.right.t() @ basis))[0]
        self.reference = _reference(matrix, basis, self.accepted, tail)
        return True

    def _make_feasible_(self, matrix: Tensor, space: Space, tail: float) -> Feasible | None:
        assert self.reference is not None
        lag = LAG[0] * self.limit * self.reference.figures[2].item(), LAG[1]
        done = ritz.make_feasible_(matrix, space, self.accepted, tail, lag)
        self.computed = 0 if done is None else done.computed
        return done

    def _project_exactly(self, matrix: Tensor) -> None:
        top = spectral.bring_down_(matrix, self.limit, spectral.exact_triplets)
        values = top.values.clamp(max=self.limit)
        self.computed = len(values)
        few = self._near(values, len(values))
        norm, *rest = (values[place].item() * spectral.ROUNDING for place in (0, few) if place < len(values))
        self.reference = _reference(matrix, top.right[:, :few], norm, rest[0] if rest else 0.0)

    def _near(self, values: Tensor, columns: int) -> int:
        """How many values are near the limit; where those are many, as in an orthogonal matrix, only the nearest."""
        few, middle = int((values > self.near).sum()), (self.near + self.limit) / 2
        return few if few <= max(4, CROWD[0] * columns) else max(4, int((values > middle).sum()))

    def _crowded(self, known: Reference) -> bool:
        columns, few = known.basis.shape
        return few > CROWD[1] * columns

    def _too_wide(self, block: Tensor) -> bool:
        return block.shape[1] > ritz.WIDEST * block.shape[0]

    def tensors(self) -> dict[str, Tensor]:
        return {} if self.reference is None else dict(self.reference._asdict())

    def restore(self, tensors: Mapping[str, Tensor], device: Any) -> None:
        held = {name: tensor if name == "figures" else _own(tensor.to(device)) for name, tensor in tensors.items()}
        self.reference = Reference(**held) if set(held) == set(Reference._fields) else None


def _reference(matrix: Tensor, basis: Tensor, norm: float, tail: float) -> Reference:
    figures = torch.tensor((norm, tail, matrix.norm().item(), 0.0, 0.0), dtype=torch.float64)
    return Reference(_own(matrix), _own(basis), figures, _own(matrix), _own(basis[:, :0]))


def _own(tensor: Tensor) -> Tensor:
    """A copy with contiguous columns whatever its source, so that a resumed run multiplies in the same order."""
    return tensor.t().clone(memory_format=torch.contiguous_format).t()
