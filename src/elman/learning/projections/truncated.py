"""Only the singular values that may be too large (Kanai's thesis, Algorithm 3.2).

Upper bounds of all singular values grow by the size of the actual step, whatever the optimiser:

    sigma_i(W + D) <= sigma_i(W) + ||D||_2 <= sigma_i(W) + ||D||_F    (thesis 3.26, 3.27; Weyl)

and only the s values whose bounds have reached 2 are computed and lowered to the limit. Values between the limit
and 2 are left alone while their bounds stay below 2: the result has sigma_1 < 2 but need not be the nearest matrix
with sigma_1 <= 2 - delta. Counting at the limit instead gives that matrix.

Deviation: as printed, s is never reset to 0 and the bounds are never lowered; here s is counted at each step, and the
bounds of the values taken down become min(sigma_i, limit), sorted again.
"""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from elman.learning.checkpoint import under
from elman.learning.projections import ritz, spectral
from elman.learning.projections.projector import Projector
from elman.learning.projections.spectral import Triplets

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

    The block begins with random directions and those of `start`; the iteration ends when every residual is negligible.
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
