"""What reads a source to its end before the target begins: forward, or in both directions (Schuster & Paliwal 1997)."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from elman.data.windows import Source
from elman.network import dropout
from elman.network.cells.cell import LayerState, Weights
from elman.network.cores.bidirectional import mirror
from elman.network.cores.stack import Layer
from elman.network.encoders.encoder import TokenEncoder

HOLD = 1e4
"""A gate's pre-activation at which the sigmoid and its derivative are exact in floating point, whatever is added."""

HOLDING_GATES = {(3, 1): (), (1, 1): (), (4, 2): (-HOLD, HOLD, 0.0, 0.0), (3, 2): (-HOLD, 0.0, 0.0)}
"""By (gates, slots) of a cell: what keeps its second slot as it is. LSTM: i = 0, f = 1; of 1997: i = 0."""


class Reading(NamedTuple):
    """A source as it was read.

    Attributes:
        memory: the outputs of the last layer, [S, B, M].
        mask: which positions count, bool [S, B].
        final: the state of every layer after its last symbol, both directions side by side, [B, M_l] a slot.

    """

    memory: Tensor
    mask: Tensor
    final: tuple[LayerState, ...]


class SourceReader(nn.Module):
    """Recurrent layers over a source; padding has no part in any result.

    Args:
        encoder: of the source's symbols; the target's own where they share one vocabulary.
        layers: bottom first, each with one direction (forward) or two (forward, backward).
        between: dropout rate between layers.
        after: dropout rate on the memory.
        locked: one dropout mask over time.

    Attributes:
        sizes: the width M_l of every layer, directions together.

    """

    def __init__(
        self,
        encoder: TokenEncoder,
        layers: Sequence[Sequence[Layer]],
        *,
        between: float = 0.0,
        after: float = 0.0,
        locked: bool = True,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.layers = nn.ModuleList(nn.ModuleList(directions) for directions in layers)
        self.sizes = tuple(sum(layer.hidden_size for layer in directions) for directions in layers)
        self.rates = (*[between] * (len(layers) - 1), after)
        self.drop = dropout.locked if locked else dropout.elementwise

    def forward(self, source: Source) -> Reading:
        """Read symbols [S, B]."""
        padding = _Padding(source.mask)
        outputs, final = self.encoder(source.symbols), []
        for directions, rate in zip(self._directions(), self.rates, strict=True):
            read = [_read(layer, outputs, padding, backward=bool(n)) for n, layer in enumerate(directions)]
            outputs = self.drop(torch.cat([one for one, _ in read], -1), rate if self.training else 0.0)
            final.append(tuple(torch.cat(slots, -1) for slots in zip(*(state for _, state in read), strict=True)))
        return Reading(outputs, source.mask, tuple(final))

    def _directions(self) -> list[list[Layer]]:
        return [[layer for layer in both.children() if isinstance(layer, Layer)] for both in self.layers]


class _Padding:
    """Where the sources of a batch end.

    Args:
        mask: bool [S, B], padding at the end.

    """

    def __init__(self, mask: Tensor) -> None:
        self.there = not bool(mask.all())
        self.flags = (~mask).unsqueeze(-1)
        self.last = (mask.sum(0) - 1).clamp_min(0).view(1, -1, 1)
        self.mirrored = mirror(mask)

    def reverse(self, xs: Tensor) -> Tensor:
        """Each sequence of xs [S, B, _] from its end to its beginning; padding stays where it is."""
        return xs.take_along_dim(self.mirrored, 0) if self.there else xs.flip(0)


def _read(layer: Layer, xs: Tensor, padding: _Padding, *, backward: bool) -> tuple[Tensor, LayerState]:
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
    """Weights and inputs with one more column, which at padded steps keeps what only the last step would tell.

    The output h of a layer is known at every step, so the last of a sequence can be looked up. An LSTM's cell is known
    after the last step alone, which is one of padding: there its gates are forced to keep it, exactly.
    """
    held = HOLDING_GATES[layer.cell.gates, layer.cell.slots]
    if not held:
        return weights, xs
    column = xs.new_tensor(held).repeat_interleave(layer.hidden_size).unsqueeze(1)
    return weights._replace(input=torch.cat([weights.input, column], 1)), torch.cat([xs, flags.to(xs.dtype)], -1)
