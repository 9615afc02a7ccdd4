"""Layers over padded sequences: no result depends on padding, which follows each sequence."""

import torch
from torch import Tensor

from elman.network.cells.cell import LayerState, Weights
from elman.network.cores.layer import Layer

HOLD = 1e4
"""A pre-activation at which the sigmoid and its derivative are exact in floating point, whatever else is added."""

HOLDING = {"i": -HOLD, "f": HOLD}
"""By gate of an LSTM: the pre-activations that keep its cell, i = 0 and f = 1."""


class Padding:
    """The ends of the sources of a batch, from a mask [S, B] that is false at padding, which follows the source."""

    def __init__(self, mask: Tensor) -> None:
        self.there = not bool(mask.all())
        self.flags = (~mask).unsqueeze(-1)
        self.last = (mask.sum(0) - 1).clamp_min(0).view(1, -1, 1)
        steps = torch.arange(len(mask), device=mask.device).unsqueeze(1)
        self.mirrored = torch.where(mask, mask.sum(0) - 1 - steps, steps).unsqueeze(-1)

    def reverse(self, xs: Tensor) -> Tensor:
        """Each sequence of xs [S, B, _] from its end to its beginning; padding is not moved."""
        return xs.take_along_dim(self.mirrored, 0) if self.there else xs.flip(0)


class NoPadding(Padding):
    """As `Padding` of sources that all fill the batch, without a look at the mask: a graph can have any length."""

    def __init__(self) -> None:
        self.there = False


def read_padded(layer: Layer, xs: Tensor, padding: Padding, *, backward: bool) -> tuple[Tensor, LayerState]:
    """Outputs [S, B, H] over xs [S, B, I] in the order of xs, and the state after each sequence's last symbol."""
    if backward:
        xs = padding.reverse(xs)
    weights, begin = layer.weights(), layer.begin(xs.shape[1])
    if not padding.there:
        outputs, state = layer.run(weights, xs, begin)
    else:
        outputs, state = layer.run(*_holding(layer, weights, xs, padding.flags), begin)
        state = (outputs.take_along_dim(padding.last, 0).squeeze(0), *state[1:])
    return padding.reverse(outputs) if backward else outputs, state


def _holding(layer: Layer, weights: Weights, xs: Tensor, flags: Tensor) -> tuple[Weights, Tensor]:
    """Weights and inputs with one more column, which at padded steps keeps the cell of an LSTM unchanged.

    The output h of a layer is known at every step, so that of the last symbol can be looked up. The cell c is known
    only after the last step, which may be padding: there the extra column forces the gates to keep it, exactly.
    """
    if len(layer.shapes) == 1:
        return weights, xs
    held = [HOLDING.get(gate, 0.0) for gate in layer.cell.gates]
    column = xs.new_tensor(held).repeat_interleave(layer.hidden_size).unsqueeze(1)
    return weights.replaced(weight_ih=torch.cat([weights.weight_ih, column], 1)), torch.cat(
        [xs, flags.to(xs.dtype)], -1
    )
