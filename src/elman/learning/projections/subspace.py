"""The nearest matrix with sigma_1 <= limit at the cost of a few thin products, proved each time.

Notation: W [n, m] tall, V [m, k] the tracked right singular vectors, P = V V', S the singular values of W V,
E = V'W'W (I - P) what couples them to the rest, r >= ||W (I - P)||_2.

For x = V a + y with y orthogonal to V, ||W x||^2 = a'S^2 a + 2 a'E y + ||W y||^2, so that with mu > r^2

    ||W||_2^2 <= mu  if  the largest eigenvalue of S^2 + E E' / (mu - r^2) is at most mu    (Schur complement).

Taking down the values in S leaves W (I - P) as it is and shrinks E, so the certificate is known before W is touched.
r is carried over from the last matrix W_0 for which it was found, by the step really taken since, D = W - W_0:

    ||W (I - P)||_2 <= ||W_0 (I - P)||_2 + ||D (I - P)||_F,
    ||W_0 (I - P)||_2^2 <= ||S_0 V_0'(I - P)||_F^2 + 2 ||E_0|| + r_0^2,

found anew by a Cholesky factor (`kernels.spectral.proved_norm`) when that is not enough, and when no certificate is to
be had, or a value is so far above the limit that rounding hides the others, all singular values are computed: whatever
the optimiser does, the result is feasible. docs/stability.md says what rounding has to do with it.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from elman.kernels import spectral
from elman.kernels.spectral import Ritz, Triplets
from elman.learning.projections.projector import Projector


class Reference(NamedTuple):
    """A matrix whose singular values are under control: W_0, V_0, S_0 and (||W_0||, r_0, ||E_0||) as [3] float64."""

    matrix: Tensor
    basis: Tensor
    values: Tensor
    bounds: Tensor


class BySubspace(Projector):
    """Warm-started block subspace iteration with a certificate.

    Args:
        limit: the bound on sigma_1.
        tolerance: how far above it the certificate may lie, as a share of it.
        spare: vectors tracked beyond those near the limit.
        near: the share of the limit from which on a value is tracked.
        crowd: the share of all columns from which on so many are near that all are computed at once.
        rounds: of the iteration before all values are computed; most steps need one.

    """

    def __init__(
        self,
        limit: float,
        *,
        tolerance: float = 3e-5,
        spare: int = 12,
        near: float = 0.85,
        crowd: float = 0.25,
        rounds: int = 8,
    ) -> None:
        self.limit, self.accepted = limit, limit * (1 + tolerance)
        self.spare, self.near, self.crowd = spare, near, crowd
        self.rounds = rounds
        self.reference: Reference | None = None
        self.basis: Tensor | None = None

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        """The nearest feasible matrix, up to the angle by which the tracked vectors lag behind."""
        matrix = spectral.tall(matrix)
        self.computed = 0
        if self.reference is None or self.reference.matrix.shape != matrix.shape:
            self._project_exactly(matrix)
            return
        drift = matrix - self.reference.matrix
        moved = drift.norm().item()
        if self.reference.bounds[0].item() + moved <= self.accepted:
            return
        if self.basis is None or moved == math.inf or not self._project_by_subspace(matrix, drift, self.basis):
            self._project_exactly(matrix)

    def _project_by_subspace(self, matrix: Tensor, drift: Tensor, basis: Tensor) -> bool:
        """Whether a certificate was found; if not, the matrix is as it was."""
        assert self.reference is not None
        reference, renewed = self.reference, False
        moved = spectral.thin_product(drift, spectral.sketch(matrix.shape[1], self.spare // 2, matrix))
        new = spectral.thin_product(drift.t(), moved)
        start = torch.cat([basis, new / new.norm().clamp(min=1e-30)], dim=1)
        for _ in range(self.rounds):
            found = spectral.ritz(matrix, start)
            top, coupling = found.top, found.coupling
            if not top.values[0].item() <= spectral.FAR * self.limit:
                return False
            tail = _carried(reference, drift, top.right)
            proved = self._proves(top, coupling, tail)
            settled = tail >= self.near * self.limit and self._proves(top, coupling, self.near * self.limit)
            if not proved and not renewed and settled:
                few = self._near(top.values)
                rest = matrix - (top.left[:, :few] * top.values[:few]) @ top.right[:, :few].t()
                tail = spectral.proved_norm(rest, self.limit)
                if tail >= self.limit:
                    return False
                known = (top.right[:, :few], top.values[:few], math.inf, tail, coupling[:, :few])
                reference, drift, renewed = _reference(matrix, *known), torch.zeros_like(drift[:1]), True
                proved = self._proves(top, coupling, tail)
            if proved:
                self._accept(matrix, found, tail, renew=renewed)
                return True
            start = found.forward
        return False

    def _proves(self, top: Triplets, coupling: Tensor, tail: float) -> bool:
        """Whether the matrix with its tracked values taken down has a spectral norm of at most `accepted`."""
        return _bound_holds(*_taken_down(top, coupling, self.limit), tail, self.accepted)

    def _accept(self, matrix: Tensor, found: Ritz, tail: float, *, renew: bool) -> None:
        top = found.top
        values, coupling = _taken_down(top, found.coupling, self.limit)
        spectral.take_down_(matrix, top, self.limit)
        self.computed = len(values)
        self._track(found.forward, values)
        if renew:
            norm = (max(values[0].item(), tail) ** 2 + coupling.norm().item()) ** 0.5
            few = self._near(top.values)
            known = (top.right[:, :few], values[:few], min(norm, self.accepted), tail, coupling[:, :few])
            self.reference = _reference(matrix, *known)

    def _project_exactly(self, matrix: Tensor) -> None:
        top = spectral.bring_down_(matrix, self.limit, spectral.exact_triplets)
        values = top.values.clamp(max=self.limit)
        self.computed = len(values)
        self._track(top.right, values)
        few = self._near(values)
        norm, *rest = (values[place].item() * spectral.ROUNDING for place in (0, few) if place < len(values))
        none = matrix.new_zeros(1)
        self.reference = _reference(matrix, top.right[:, :few], values[:few], norm, rest[0] if rest else 0.0, none)

    def _near(self, values: Tensor) -> int:
        """How many values are near the limit.

        A reference holds their vectors alone: those of the many values that lie close together below turn into each
        other with every step, and would be lost to it at once.
        """
        return int((values > self.near * self.limit).sum())

    def _track(self, right: Tensor, values: Tensor) -> None:
        """Choose the vectors, of any length, to follow from here on, or none when they are too many."""
        wanted = self._near(values) + self.spare
        self.basis = None if wanted > self.crowd * len(right) else _own(right[:, :wanted])

    def tensors(self) -> dict[str, Tensor]:
        """The reference and the tracked vectors."""
        saved = {} if self.reference is None else dict(self.reference._asdict())
        return saved if self.basis is None else saved | {"tracked": self.basis}

    def restore(self, tensors: Mapping[str, Tensor], device: Any) -> None:
        """Take back what `tensors` gave."""
        held = {name: tensor if name == "bounds" else tensor.to(device) for name, tensor in tensors.items()}
        self.basis = held.pop("tracked", None)
        self.reference = Reference(**held) if held else None


def _taken_down(top: Triplets, coupling: Tensor, limit: float) -> tuple[Tensor, Tensor]:
    values = top.values.clamp(max=limit)
    return values, coupling * (values / top.values.clamp(min=1e-30))


def _bound_holds(values: Tensor, coupling: Tensor, tail: float, accepted: float) -> bool:
    room = accepted**2 - tail**2
    if room <= 0:
        return False
    block = torch.diag(values.square().double()) + (coupling.t() @ coupling).double() / room
    return torch.linalg.eigvalsh(block)[-1].item() <= accepted**2


def _carried(reference: Reference, drift: Tensor, right: Tensor) -> float:
    """An upper bound of ||W (I - P)||_2 from that of the reference and the step since."""
    _, rest, coupling = reference.bounds.tolist()
    lost = reference.basis - right @ (right.t() @ reference.basis)
    before = (lost * reference.values).norm().item() ** 2 + 2 * coupling + rest**2
    moved = drift.norm().item() ** 2
    outside = max(moved - spectral.thin_product(drift, right).norm().item() ** 2, 0.0) + 1e-6 * moved
    return (before**0.5 + outside**0.5) * spectral.ROUNDING


def _reference(matrix: Tensor, basis: Tensor, values: Tensor, norm: float, tail: float, coupling: Tensor) -> Reference:
    bounds = torch.tensor([norm, tail, coupling.norm().item()], dtype=torch.float64)
    return Reference(_own(matrix), _own(basis), _own(values), bounds)


def _own(tensor: Tensor) -> Tensor:
    """A copy whose layout does not depend on where it came from: a resumed run multiplies in the same order."""
    return tensor.clone(memory_format=torch.contiguous_format)
