"""Projections of one matrix after each step: their interface, and those that need little memory between steps.

The nearest matrix with sigma_1 <= limit from all singular values (Kanai's thesis, Algorithm 3.1), the nearest matrix
with orthogonal columns, and spectral normalisation. `subspace` and `truncated` compute fewer singular values.

Only the singular values that may be too large (Kanai's thesis, Algorithm 3.2).

Upper bounds of all singular values grow by the size of the actual step, whatever the optimiser:

    sigma_i(W + D) <= sigma_i(W) + ||D||_2 <= sigma_i(W) + ||D||_F    (thesis 3.26, 3.27; Weyl)

and only the s values whose bounds have reached 2 are computed and lowered to the limit. Values between the limit
and 2 are left alone while their bounds stay below 2: the result has sigma_1 < 2 but need not be the nearest matrix
with sigma_1 <= 2 - delta. Counting at the limit instead gives that matrix.

Deviation: as printed, s is never reset to 0 and the bounds are never lowered; here s is counted at each step, and the
bounds of the values taken down become min(sigma_i, limit), sorted again.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from elman.learning.checkpoint import under
from elman.learning.projections import ritz, spectral
from elman.learning.projections.spectral import Triplets


class Projector(ABC):
    """Brings one matrix back into a set, in place; `computed` singular values in the last call (s of the thesis)."""

    computed: int = 0

    @abstractmethod
    def project_(self, matrix: Tensor) -> None:
        """Change `matrix` [n, m], which may be a view of stacked weights, as little as the set demands."""

    def tensors(self) -> dict[str, Tensor]:
        """The state kept between steps, from which a resumed run continues bit for bit."""
        return {}

    def restore(self, tensors: Mapping[str, Tensor], device: Any) -> None:  # noqa: ARG002
        """Take back what `tensors` returned, onto `device`."""
        assert not tensors

    def counts(self) -> dict[str, int]:
        """The counts of the last call, by name."""
        return {"s": self.computed}


class BySVD(Projector):
    """W = U diag(min(sigma, limit)) V', by a full singular value decomposition (thesis 3.13-3.15)."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        """The nearest feasible matrix in the Frobenius and the trace norm (thesis, Lemma 3.5, 3.18-3.24)."""
        self.computed = len(spectral.bring_down_(matrix, self.limit, spectral.svd_triplets).values)


class ByEigh(BySVD):
    """The same point from the eigenvectors of W'W, at half the cost of the decomposition."""

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        matrix = spectral.tall(matrix)
        self.computed = len(spectral.bring_down_(matrix, self.limit, spectral.exact_triplets).values)


class ToOrthogonal(Projector):
    """The nearest gain * Q with orthonormal columns (or rows, when there are fewer): the polar factor.

    The hard alternative of Arjovsky et al. 2016 and Vorontsov et al. 2017, for real matrices. Nothing is
    reparametrised: any optimiser may step the weights, and the retraction to the nearest point follows.

    After a small step the Newton-Schulz iteration Q <- Q (3 I - Q'Q) / 2 gives it by products alone; it converges
    when ||Q'Q - I||_F < 1, and otherwise the factor comes from the singular value decomposition.
    """

    def __init__(self, gain: float = 1.0, rounds: int = 6) -> None:
        self.gain, self.rounds = gain, rounds

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        matrix = spectral.tall(matrix)
        self.computed = 0
        q = matrix / self.gain
        identity = torch.eye(q.shape[1], dtype=q.dtype, device=q.device)
        near = 1e-6 * q.shape[1] ** 0.5
        for _ in range(self.rounds):
            error = q.t() @ q - identity
            distance = error.norm().item()
            if distance < near or not distance < 0.9:
                break
            q = q - 0.5 * q @ error
        if not distance < 0.9:
            if not matrix.isfinite().all():
                return  # a decomposition of infinities may be finite and would hide them
            u, values, vh = torch.linalg.svd(q, full_matrices=False)
            self.computed, q = len(values), u @ vh
        matrix.copy_(q * self.gain)


class ToSpectralNorm(Projector):
    """W = bound W / sigma_1 (spectral normalisation, Miyato et al. 2018): all singular values shrink with the largest.

    Sigma_1 is estimated as in the paper by power iteration from the last vectors, here with a block and two rounds,
    after all values of the first matrix. The estimate is from below, so sigma_1 may exceed the bound a little after a
    step into new directions; the projections of `kind = "spectral"` guarantee it. Matrices below the bound are scaled
    up only where `always` is set.
    """

    def __init__(self, bound: float, *, always: bool = True) -> None:
        self.bound, self.always = bound, always
        self.block: Tensor | None = None

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        matrix = spectral.tall(matrix)
        width = min(4, matrix.shape[1])
        even, unit = spectral.scaled(matrix)
        if self.block is None or self.block.shape[0] != matrix.shape[1]:
            values, _, right = spectral.exact_triplets(even)
        else:
            forward = ritz.space_of(even, self.block).forward
            values, space = ritz.ritz(ritz.space_of(even, spectral.orthonormal(forward)))
            right = space.right
        self.computed = len(values)
        self.block = right[:, :width].clone(memory_format=torch.contiguous_format)
        largest = values[0].item()
        if largest > 0 and (self.always or largest * unit > self.bound):
            torch.mul(even, self.bound / largest, out=matrix)

    def tensors(self) -> dict[str, Tensor]:
        return {} if self.block is None else {"block": self.block}

    def restore(self, tensors: Mapping[str, Tensor], device: Any) -> None:
        self.block = tensors["block"].to(device) if tensors else None


StepNorm = Literal["frobenius", "spectral"]
OTHER: Mapping[StepNorm, StepNorm] = {"frobenius": "spectral", "spectral": "frobenius"}
BESIDE = "other/"
"""Before the names of the tensors of the other norm."""


class ByTruncation(Projector):
    """Algorithm 3.2 for one matrix, whose values are taken down to the limit 2 - delta.

    Bounds are counted at `level`: 2 in the thesis, or the limit. The norm of the step is Frobenius, or spectral, which
    is tighter and costs matrix products; `compare` counts with the other norm too (thesis, Fig. 3.5): the algorithm
    with that norm, its own bounds included, is applied to the same steps on a copy of the matrix.
    """

    def __init__(self, limit: float, level: float, norm: StepNorm = "frobenius", *, compare: bool = False) -> None:
        self.limit, self.level, self.norm = limit, level, norm
        self.previous: Tensor | None = None
        self.bounds: Tensor | None = None
        self.other = ByTruncation(limit, level, OTHER[norm]) if compare else None

    @torch.no_grad()
    def project_(self, matrix: Tensor) -> None:
        """Count the values whose bounds reach the level, and lower them."""
        self._project(spectral.tall(matrix))

    def _project(self, matrix: Tensor) -> None:
        if self.previous is None or self.bounds is None or self.previous.shape != matrix.shape:
            step, start = None, None
            bounds = torch.linalg.svdvals(matrix)
        else:
            step = matrix - self.previous
            even, unit = spectral.scaled(step)
            start = even.t() @ (even @ spectral.sketch(matrix.shape[1], 8, matrix))
            bounds = self.bounds + unit * size_of(even, self.norm)
        if self.other is not None:
            copy = self.other.previous
            self.other._project(matrix.clone() if copy is None or step is None else copy + step)
        self.computed = int((bounds >= self.level).sum())
        if self.computed:
            bounds = self._take_down_(matrix, bounds, start)
        self.bounds, self.previous = bounds, matrix.clone(memory_format=torch.contiguous_format)

    def _take_down_(self, matrix: Tensor, bounds: Tensor, start: Tensor | None) -> Tensor:
        top = spectral.bring_down_(
            matrix, self.limit, lambda at: top_triplets(at, self.computed, start), max(self.limit, self.level)
        )
        # A bound that was not reached stays valid; rounding of the computed values must not lower one too far.
        known = top.values.clamp(max=self.limit) * spectral.ROUNDING
        return torch.cat([torch.minimum(known, bounds[: len(known)]), bounds[len(known) :]]).sort(descending=True)[0]

    def tensors(self) -> dict[str, Tensor]:
        """The matrix and the bounds, for both norms where they are compared."""
        held = {"previous": self.previous, "bounds": self.bounds}
        found = {name: tensor for name, tensor in held.items() if tensor is not None}
        if self.other is not None:
            found |= {f"{BESIDE}{name}": tensor for name, tensor in self.other.tensors().items()}
        return found

    def restore(self, tensors: Mapping[str, Tensor], device: Any) -> None:
        held = {name: tensor.to(device) for name, tensor in tensors.items()}
        self.previous, self.bounds = held.get("previous"), held.get("bounds")
        if self.other is not None:
            self.other.restore(under(BESIDE, held), device)

    def counts(self) -> dict[str, int]:
        return super().counts() if self.other is None else super().counts() | {"s_other": self.other.computed}


def size_of(step: Tensor, norm: StepNorm) -> float:
    """The Frobenius norm of a step, or a proved bound of its spectral norm."""
    whole = step.norm().item()
    return whole if norm == "frobenius" else min(whole, spectral.proved_norm(step, whole))


def top_triplets(matrix: Tensor, count: int, start: Tensor | None, rounds: int = 20) -> Triplets:
    """The `count` largest triplets of a tall matrix, by block iteration where that is cheaper, else from all of them.

    The block begins with random directions and the columns of `start`; the iteration ends when every residual is
    negligible.
    """
    size = count + 8 + (0 if start is None else start.shape[1])
    if size <= matrix.shape[1] // 8:
        block = spectral.sketch(matrix.shape[1], count + 8, matrix)
        block = block if start is None else torch.cat([block, start / start.norm().clamp(min=1e-30)], dim=1)
        for _ in range(rounds):
            values, found = ritz.ritz(ritz.space_of(matrix, spectral.orthonormal(block)))
            if found.coupling(values)[:, :count].norm(dim=0).max() <= 1e-4 * values[0].square():
                return Triplets(*(part[..., :count] for part in found.triplets(values)))
            block = found.forward
    return Triplets(*(part[..., :count] for part in spectral.exact_triplets(matrix)))
