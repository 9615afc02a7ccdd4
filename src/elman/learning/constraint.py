"""Constraints on recurrent weights: projections of their blocks after each step of the optimiser."""

from collections.abc import Mapping, Set
from typing import Annotated, Any, Literal, TypeAlias

import torch
from msgspec import Meta
from torch import Tensor

from elman import config
from elman.config.plugins import wrong
from elman.config.training import Constraint
from elman.errors import UserError
from elman.learning.checkpoint import under
from elman.learning.projections.projector import ByEigh, BySVD, ByTruncation, Projector, ToOrthogonal, ToSpectralNorm
from elman.learning.projections.subspace import BySubspace
from elman.network.cores.core import RecurrentCore
from elman.network.cores.stack import StackCore, candidate_hidden, candidate_input, layers_of, linearised, stack_of
from elman.network.spectrum import spectral_norm, spectral_radius

INPUT_BOUND = 2.0
"""Sigma_1(W_xh) <= 2 (thesis 3.11)."""

SingularValue: TypeAlias = Annotated[float, Meta(ge=1e-15, le=1e15)]
"""A bound of singular values whose square float32 holds."""


class Spectral(Constraint, frozen=True, tag="spectral"):
    """sigma_1 of the candidate's W_hh <= 2 - delta, or <= bound (Kanai's thesis, chapter 3).

    `input`: also sigma_1 of its W_xh <= 2. The last three keys belong to the method truncated: where bounds are
    counted, the norm of the step by which they grow, and whether to count with the other norm too.
    """

    delta: Annotated[float, Meta(gt=0, lt=2)] = 0.2
    bound: SingularValue | None = None
    method: Literal["subspace", "eigh", "svd", "truncated"] = "subspace"
    input: bool = False
    count_at: Literal["two", "limit"] = "two"
    step_norm: Literal["frobenius", "spectral"] = "frobenius"
    compare_norms: bool = False

    @property
    def of_inputs(self) -> bool:
        """As the key `input` says."""
        return self.input

    def check(self, cells: Set[str]) -> None:
        """Raise UserError where a bound has to be set and is not."""
        if self.bound is None and "elman" in cells:
            raise UserError(
                "training.constraint.delta bounds sigma_1 by 2 - delta, a limit for gated cells; for the cell elman set"
                " training.constraint.bound, below 1 to keep h = 0 stable with tanh or relu"
            )

    def projector(self, *, of_input: bool) -> Projector:
        limit = 2 - self.delta if self.bound is None else self.bound
        return spectral_projector(self, INPUT_BOUND if of_input else limit)


class OrthogonalWeights(Constraint, frozen=True, tag="orthogonal"):
    """The candidate's W_hh stays gain times an orthogonal matrix (`learning/projections/projector.py`)."""

    gain: SingularValue = 1.0

    def projector(self, *, of_input: bool) -> Projector:  # noqa: ARG002
        return ToOrthogonal(self.gain)


class SpectralNorm(Constraint, frozen=True, tag="spectral-norm"):
    """The candidate's W_hh is scaled to sigma_1 = bound, or only down to it (`learning/projections/projector.py`)."""

    bound: SingularValue = 1.0
    always: bool = True

    def projector(self, *, of_input: bool) -> Projector:  # noqa: ARG002
        return ToSpectralNorm(self.bound, always=self.always)


class ConstrainedCore:
    """A constraint on the blocks of a core of layers of one cell, with counts for the log."""

    def __init__(self, core: StackCore, recipe: Constraint) -> None:
        self.layers, self.with_input = layers_of(core), recipe.of_inputs
        places = [False] * len(self.layers) + [True] * len(self.layers) * self.with_input
        self.projectors: list[Projector] = [recipe.projector(of_input=of_input) for of_input in places]
        if others := [one for one in self.projectors if not isinstance(one, Projector)]:
            raise wrong(recipe, f"its projector is {others[0]!r:.60}, not a Projector")
        self._sums: dict[str, list[int]] = {}
        self._calls = 0

    def blocks(self) -> list[Tensor]:
        """W_hh of every layer, then W_xh where constrained: views, taken again because averaging exchanges weights."""
        hidden = [candidate_hidden(layer).detach() for layer in self.layers]
        return hidden + [candidate_input(layer).detach() for layer in self.layers if self.with_input]

    def project(self) -> None:
        """Project the blocks; those that are not finite are left unchanged, and the next loss reports them."""
        try:
            for projector, block in zip(self.projectors, self.blocks(), strict=True):
                projector.project_(block)
        except RuntimeError:  # torch.linalg.LinAlgError, which torch does not export to type checkers
            if all(block.isfinite().all() for block in self.blocks()):
                raise
        self._calls += 1
        for index, projector in enumerate(self.projectors):
            for name, count in projector.counts().items():
                self._sums.setdefault(name, [0] * len(self.projectors))[index] += count

    def mean_counts(self) -> dict[str, list[float]]:
        """Mean counts per block since the last call: s, the number of singular values computed per step."""
        means = {name: [total / self._calls for total in sums] for name, sums in self._sums.items() if self._calls}
        self._sums, self._calls = {}, 0
        return means

    def tensors(self) -> dict[str, Tensor]:
        """The state of every projector and the counts since the last `mean_counts`, for a checkpoint."""
        found = {f"count/{name}": torch.tensor([self._calls, *sums]) for name, sums in self._sums.items()}
        for index, projector in enumerate(self.projectors):
            found |= {f"{index}/{name}": tensor for name, tensor in projector.tensors().items()}
        return found

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue from `tensors`."""
        device = self.layers[0].weight_ih.device
        for index, projector in enumerate(self.projectors):
            projector.restore(under(f"{index}/", tensors), device)
        self._sums, self._calls = {}, 0
        for name, counts in under("count/", tensors).items():
            self._calls, *self._sums[name] = counts.tolist()


CELLS = {"elman", "lstm", "lstm-peephole", "lstm-1997", "gru-before", "gru-after"}
"""The cells whose recurrence the constrained matrices describe."""


def build_constraint(recipe: config.Training, core: RecurrentCore) -> ConstrainedCore | None:
    """The constraint of a recipe on a core, or None.

    Raises UserError where the core has no recurrent blocks, or the recipe must set the bound and does not.
    """
    if recipe.constraint is None:
        return None
    core = stack_of(core, "training.constraint")
    cells = {layer.cell.name for layer in layers_of(core)}
    if other := cells - CELLS:
        raise UserError(
            "training.constraint bounds the recurrent matrix of the candidate state, which alone does not determine the"
            f" dynamics of the cell {other.pop()}; use elman, lstm or gru, or leave training.constraint out"
        )
    recipe.constraint.check(cells)
    return ConstrainedCore(core, recipe.constraint)


def spectral_projector(recipe: Spectral, limit: float) -> Projector:
    """The projector of a method, for sigma_1 <= limit."""
    if recipe.method == "truncated":
        level = limit if recipe.count_at == "limit" else max(2.0, limit)
        return ByTruncation(limit, level, recipe.step_norm, compare=recipe.compare_norms)
    return {"svd": BySVD, "eigh": ByEigh, "subspace": BySubspace}[recipe.method](limit)


def recurrent_spectrum(core: RecurrentCore) -> dict[str, Any]:
    """Sigma_1 of each layer's W_hh and the spectral radius of J over all layers (thesis 3.10), for metrics.jsonl.

    Empty for cores and cells whose recurrence these matrices do not describe; NaN for weights that are not finite.
    """
    if not (radii := spectral_radii(core)):
        return {}
    assert isinstance(core, StackCore)
    with torch.no_grad():
        sigmas = [spectral_norm(candidate_hidden(layer)).item() for layer in layers_of(core)]
    return {"sigma_1": sigmas, "spectral_radius": max(radii)}


@torch.no_grad()
def spectral_radii(core: RecurrentCore) -> list[float]:
    """The spectral radius of J of each layer (thesis 3.10); empty, or NaN, where `recurrent_spectrum` is."""
    if not isinstance(core, StackCore) or any(layer.cell.name not in CELLS for layer in layers_of(core)):
        return []
    return [spectral_radius(linearised(layer)) for layer in layers_of(core)]
