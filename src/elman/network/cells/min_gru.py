"""minGRU (Feng et al. 2024): a gate of the input alone, so that the state enters linearly.

    z = sigm(W_z x + b_z)                         h' = (1 - z) h + z g(W_h x + b_h)

with g(v) = v + 1/2 for v >= 0 and sigm(v) below (appendix B). g is positive, which the published parallel form in
logarithms needs; the loop and `scan` do not, and are exact for any state.
"""

import torch
from torch import Tensor

from elman.network.cells.cell import Driven, LayerState, Retention, Weights, block_of, input_products
from elman.network.fast.diagonal import scan


def g(v: Tensor) -> Tensor:
    """Return v + 1/2 for v >= 0, sigm(v) below: positive, continuous and increasing."""
    return torch.where(v >= 0, v + 0.5, v.sigmoid())


class LinearState(Driven, frozen=True):
    """h' = a h + b, where a and b depend on the input alone."""

    masks = None
    gates = ()

    def factors(self, sums: Tensor) -> tuple[Tensor, Tensor]:
        """The factor a and the addend b, from sums [..., G H] in the order of `input_gates`."""
        raise NotImplementedError

    def driven(self, w: Weights, drive: Tensor, state: LayerState) -> LayerState:
        a, b = self.factors(drive)
        return (a * state[0] + b,)

    def scan(self, w: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        states = scan(*self.factors(input_products(w, xs)), state[0])
        return states, (states[-1].clone(),)


class MinGRU(LinearState, frozen=True, tag="min-gru"):
    """h' = (1 - z) h + z g(W_h x + b_h)."""

    input_gates = ("z", "h")
    candidate = "h"
    keeps = (("z", -1),)

    def factors(self, sums: Tensor) -> tuple[Tensor, Tensor]:
        """1 - z, and z g(v)."""
        z, v = sums.chunk(2, dim=-1)
        return (-z).sigmoid(), z.sigmoid() * g(v)

    def retention(self, w: Weights) -> Retention:
        return Retention((block_of(w, 0, len(w.weight_ih) // 2),), lambda low, high: (-low).sigmoid())  # noqa: ARG005
