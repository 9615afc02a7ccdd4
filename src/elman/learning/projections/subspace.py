"""The nearest matrix with sigma_1 <= limit at the cost of a few thin products, proved each time.

Notation: W [n, m] tall; V [m, k] orthonormal right directions that are followed, P = V V', of which Rayleigh-Ritz makes
approximate singular vectors, S the singular values of W V, E = V'W'W (I - P) what couples them to the rest,
r >= ||W (I - P)||_2.

For x = V a + y with y orthogonal to V, ||W x||^2 = a'S^2 a + 2 a'E y + ||W y||^2, so that with mu > r^2

    ||W||_2^2 <= mu  if  S^2 + E E' / (mu - r^2) <= mu I    (Schur complement).

Taking down the values in S leaves W (I - P) as it is and shrinks E, so the certificate is known before W is touched.

A training step D has few directions Q that matter and a small rest. The directions followed only grow from step to
step, P_t containing P_(t-1) and Q, and with them the bound is carried over,

    ||W_t (I - P_t)||_2 <= ||W_(t-1) (I - P_(t-1))||_2 + ||D (I - Q Q')||_F,

whatever was done to W inside P. When it has grown too large, or the directions too many, the directions near the limit
are kept and r is proved anew by a Cholesky factor (`kernels.spectral.proved_norm`). When no certificate is to be had,
or a value is so far above the limit that rounding hides the others, all singular values are computed: whatever the
optimiser does, the result is feasible. docs/stability.md says what rounding has to do with it.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from elman.kernels import spectral
from elman.kernels.spectral import Ritz, Triplets
from elman.learning.projections.projector import Projector

RENEWED = 1.1
"""By how much a renewed bound may exceed the largest value that is not followed."""


class Reference(NamedTuple):
    """The matrix as it was last left: W, V and (a bound of ||W||_2, r) as [2] float64."""

    matrix: Tensor
    basis: Tensor
    bounds: Tensor


class Result:
    """What W becomes when the values of Rayleigh-Ritz that are above the limit are taken down to it.

    Attributes:
        top: the triplets before.
        values: S after [k].
        coupling: E' after [m, k].

    """

    def __init__(self, found: Ritz, limit: float) -> None:
        self.top = found.top
        self.values = found.top.values.clamp(max=limit)
        self.coupling = found.coupling * (self.values / found.top.values.clamp(min=1e-30))
        self.overlap = (self.coupling.t() @ self.coupling).double()

    def proves(self, norm: float, tail: float) -> bool:
        """Whether ||W||_2 <= `norm` follows from r = `tail`."""
        room = norm**2 - tail**2
        if room <= 0:
            return False
        gap = self.overlap / -room
        gap.diagonal().add_(norm**2 - self.values.square().double())
        return torch.linalg.cholesky_ex(gap)[1].item() == 0

    def residuals(self, count: int) -> Tensor:
        """The coupling of the vectors that stand most in the way of a proof [m, count]."""
        needed = self.values.square() + self.overlap.diagonal()
        return self.coupling[:, needed.topk(min(count, len(needed))).indices]


class BySubspace(Projector):
    """Rayleigh-Ritz in a space that grows with the steps, and a certificate.

    Args:
        limit: the bound on sigma_1.
        tolerance: how far above it the certificate may lie, as a share of it.
        near: the share of the limit from which on a value is followed after a renewal.
        widest: the share of all columns from which on the directions followed are renewed.
        fresh: the most directions of a step that are looked for, and the share of the limit that may be left out.
        block: columns by which the space grows when it does not do.
        crowd: the share of all columns from which on so many are followed that all values are computed at once.
        rounds: of the search for a certificate before all values are computed.

    """

    def __init__(
        self,
        limit: float,
        *,
        tolerance: float = 3e-5,
        near: float = 0.8,
        widest: float = 0.15,
        fresh: tuple[int, float] = (16, 0.02),
        block: int = 6,
        crowd: float = 0.25,
        rounds: int = 6,
    ) -> None:
        self.limit, self.accepted = limit, limit * (1 + tolerance)
        self.near, self.renewed = near * limit, RENEWED * near * limit
        self.widest, self.block, self.crowd, self.rounds = widest, block, crowd, rounds
        self.fresh, self.left_out = fresh[0], fresh[1] * limit
        self.reference: Reference | None = None

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        """The nearest feasible matrix, up to the angle by which the vectors followed lag behind."""
        matrix = spectral.tall(matrix)
        self.computed = 0
        if self.reference is None or self.reference.matrix.shape != matrix.shape:
            self._project_exactly(matrix)
            return
        drift = matrix - self.reference.matrix
        moved = drift.norm().item()
        if self.reference.bounds[0].item() + moved <= self.accepted:
            return
        if moved == math.inf or not self._project_by_subspace(matrix, drift):
            self._project_exactly(matrix)

    def _project_by_subspace(self, matrix: Tensor, drift: Tensor) -> bool:
        """Whether a certificate was found; if not, the matrix is as it was."""
        assert self.reference is not None
        basis, columns = self.reference.basis, matrix.shape[1]
        if basis.shape[1] > self.crowd * columns:
            return False
        new, outside = self._directions(matrix, drift, basis)
        tail, tried = (self.reference.bounds[1].item() + outside) * spectral.ROUNDING, False
        for _ in range(self.rounds):
            if basis.shape[1] + new.shape[1] > columns / 2:
                return False
            basis = spectral.extended(basis, new)
            result = Result(spectral.ritz(matrix, basis), self.limit)
            if not result.top.values[0].item() <= spectral.FAR * self.limit:
                return False
            proved, narrow = result.proves(self.accepted, tail), basis.shape[1] <= self.widest * columns
            if not tried and not (proved and narrow) and result.proves(self.accepted, self.renewed):
                few, tried = self._near(result.values, columns), True
                anew = spectral.proved_norm(_without(matrix, result.top, few), self.limit)
                if result.proves(self.accepted, anew):
                    self._accept(matrix, result, anew, few)
                    return True
            if proved:
                self._accept(matrix, result, tail, basis.shape[1])
                return True
            basis, new = result.top.right, result.residuals(self.block)
        return False

    def _directions(self, matrix: Tensor, drift: Tensor, basis: Tensor) -> tuple[Tensor, float]:
        """New right directions, those from which the step moves W and those to which; ||D (I - P)||_F at most."""
        rest = torch.addmm(drift, spectral.thin_product(drift, basis), basis.t(), alpha=-1)
        own, image, outside = spectral.main_directions(rest, min(self.fresh, rest.shape[1] // 8 + 1), self.left_out)
        return torch.cat([own, spectral.thin_product(matrix.t(), image[:, : self.block])], dim=1), outside

    def _accept(self, matrix: Tensor, result: "Result", tail: float, kept: int) -> None:
        """Take down the values, and go on with the first `kept` vectors, outside of which `tail` bounds W."""
        spectral.take_down_(matrix, result.top, self.limit)
        self.computed = len(result.values)
        norm = (max(result.values[0].item(), tail) ** 2 + result.coupling.norm().item()) ** 0.5
        right = result.top.right
        basis = right if kept == right.shape[1] else spectral.orthonormal(right[:, :kept])
        self.reference = _reference(matrix, basis, min(norm, self.accepted), tail)

    def _project_exactly(self, matrix: Tensor) -> None:
        top = spectral.bring_down_(matrix, self.limit, spectral.exact_triplets)
        values = top.values.clamp(max=self.limit)
        self.computed = len(values)
        few = self._near(values, len(values))
        norm, *rest = (values[place].item() * spectral.ROUNDING for place in (0, few) if place < len(values))
        self.reference = _reference(matrix, top.right[:, :few], norm, rest[0] if rest else 0.0)

    def _near(self, values: Tensor, columns: int) -> int:
        """How many values are near the limit; of a crowd below it, such as all of an orthogonal matrix, the first."""
        few, first = int((values > self.near).sum()), max(4, columns // 32)
        return first if few > first and values[first].item() < (self.near + self.limit) / 2 else few

    def tensors(self) -> dict[str, Tensor]:
        """The reference."""
        return {} if self.reference is None else dict(self.reference._asdict())

    def restore(self, tensors: Mapping[str, Tensor], device: Any) -> None:
        """Take back what `tensors` gave."""
        held = {name: tensor if name == "bounds" else tensor.to(device) for name, tensor in tensors.items()}
        self.reference = Reference(**held) if set(held) == set(Reference._fields) else None


def _without(matrix: Tensor, top: Triplets, few: int) -> Tensor:
    """W (I - P) for the first few vectors."""
    return torch.addmm(matrix, top.left[:, :few] * top.values[:few], top.right[:, :few].t(), alpha=-1)


def _reference(matrix: Tensor, basis: Tensor, norm: float, tail: float) -> Reference:
    return Reference(_own(matrix), _own(basis), torch.tensor([norm, tail], dtype=torch.float64))


def _own(tensor: Tensor) -> Tensor:
    """A copy whose layout does not depend on where it came from: a resumed run multiplies in the same order."""
    return tensor.clone(memory_format=torch.contiguous_format)
