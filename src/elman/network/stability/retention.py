"""Tier 2 for recurrences that are linear in their state: the largest factor by which a step multiplies it.

Where a step is S' = A(x) S + b(x), two states fed the same inputs differ by A(x_T) ... A(x_1) (S - S~): each factor is
below 1 in norm whatever the weights are (sigm, exp(-.), the modulus of an eigenvalue), without a condition like
sigma_1(W_hh) < 2 of tier 0. What the inputs decide is how far below. The value is the supremum of the norm of A over
the inputs of the layer: over all words for the lowest layer, and over all vectors that a norm can give for the layers
of residual blocks, since |x_j| <= sqrt(n) |scale_j| + |shift_j| behind one.
"""

import copy
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from elman.network.cells.cell import Gate
from elman.network.cores.layer import Layer
from elman.network.cores.residual import ResidualCore, convolutions_of
from elman.network.cores.stack import Layers, layers_of
from elman.network.stability.certificate import Certificate
from elman.network.stability.incremental import Range, box_range

RETENTION = partial(
    Certificate,
    tier=2,
    name="largest factor of the state",
    limit=1.0,
    proves="any two states of the layer fed the same inputs come together by at least this factor a step, wherever they"
    " begin; gradients with respect to an early state shrink as fast",
    does_not="nothing of how large states and outputs are, of the layers above, which read the difference until it has"
    " faded, or of what is learnt; of a layer of a stack above the lowest it gives no rate (1)",
)

Lowest = Callable[[Tensor, Tensor], Range]
"""(weight [R, I], bias [R]) -> the range of W x + b over the inputs of a layer."""


def linear_cells(core: Layers) -> bool:
    """Whether every layer is linear in its state, with factors that are known."""
    return all(layer.cell.linear for layer in layers_of(core))


@torch.no_grad()
def retained(core: Layers, lowest: Lowest | None) -> list[Certificate]:
    """One certificate per layer; `lowest` is the range over what the lowest layer reads, None: it is not known.

    Layers of residual blocks whose range is not given, or behind a convolution, read whatever their norm can give.
    """
    ranges = [lowest, *[None] * (len(core.layers) - 1)]
    if isinstance(core, ResidualCore) and (convolutions := convolutions_of(core)):
        pairs = zip(convolutions, core.norms, strict=True)
        ranges = [partial(box_range, each.largest(largest_of(norm))) for each, norm in pairs]
    elif isinstance(core, ResidualCore):
        bounded = [partial(box_range, largest_of(norm)) for norm in core.norms]
        ranges = [known or bound for known, bound in zip(ranges, bounded, strict=True)]
    return [
        RETENTION(layer=number, value=largest_factor(layer, input_range))
        for number, (layer, input_range) in enumerate(zip(layers_of(core), ranges, strict=True), start=1)
    ]


def stream_of(core: Layers, vectors: Tensor) -> Tensor:
    """What the lowest layer reads of encoded vectors [..., E], float64."""
    if not isinstance(core, ResidualCore):
        return vectors
    stream = vectors if core.into is None else vectors @ core.into.detach().double().t()
    return copy.deepcopy(core.norms[0]).double()(stream)


def largest_of(norm: nn.Module) -> Tensor:
    """The largest |x_j| behind a norm, whatever it reads, [n], float64."""
    scale, *shift = (parameter.detach().double().abs() for parameter in norm.parameters())
    return len(scale) ** 0.5 * scale + (shift[0] if shift else 0.0)


def largest_factor(layer: Layer, input_range: Lowest | None) -> float:
    """The value of the certificate; 1 where the range of the inputs is not known, but matters."""
    found = layer.cell.retention(copy.deepcopy(layer).double().eval().weights())
    assert found is not None
    gates, factor = found
    nothing = layer.weight_ih.new_zeros(0, dtype=torch.float64)
    if not gates:
        return factor(nothing, nothing).max().item()
    if input_range is None:
        return 1.0
    low, high = input_range(*gates[0])
    for gate in gates[1:]:
        before = _or_nothing(input_range, gate)
        low, high = low + before.low, high + before.high
    return factor(low, high).max().item()


def _or_nothing(input_range: Lowest, gate: Gate) -> Range:
    """The range of a product that the first steps of a sequence are without."""
    low, high = input_range(*gate)
    return Range(low.clamp(max=0), high.clamp(min=0))
