"""Layers that read a whole source before the target begins, in one direction or both (Schuster & Paliwal 1997)."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from elman import config
from elman.data.windows import Source
from elman.errors import UserError
from elman.network.cells.cell import LayerState, Weights
from elman.network.cores.layer import Layer, build_layer
from elman.network.cores.stack import dropouts
from elman.network.encoders.encoder import TokenEncoder, build_encoder

HOLD = 1e4
"""A pre-activation at which the sigmoid and its derivative are exact in floating point, whatever else is added."""

HOLDING_GATES = {(3, 1): (), (1, 1): (), (4, 2): (-HOLD, HOLD, 0.0, 0.0), (3, 2): (-HOLD, 0.0, 0.0)}
"""By (gates, slots) of a cell: the pre-activations that keep its second slot. LSTM: i = 0, f = 1; of 1997: i = 0."""


class Reading(NamedTuple):
    """The outputs [S, B, M] of the last layer over a source, and its mask, bool [S, B], false at padding.

    `final` is the state of every layer after its last symbol, both directions concatenated, [B, M_l] per slot.
    """

    memory: Tensor
    mask: Tensor
    final: tuple[LayerState, ...]


class SourceReader(nn.Module):
    """Recurrent layers over a source, in one direction (forward) or two; no result depends on padding.

    Its encoder is the target's own where both have one vocabulary; `sizes` holds the width M_l of every layer,
    directions together.
    """

    def __init__(self, record: config.Reader, encoder: TokenEncoder, *, locked: bool) -> None:
        super().__init__()
        stack, directions = record.stack, 2 if record.bidirectional else 1
        self.encoder = encoder
        self.sizes = tuple(directions * size for size in stack.sizes)
        self.layers = nn.ModuleList(
            nn.ModuleList(build_layer(stack, below, size, locked=locked, first=index == 0) for _ in range(directions))
            for index, (below, size) in enumerate(zip((encoder.size, *self.sizes), stack.sizes, strict=False))
        )
        self.dropouts = dropouts(len(self.sizes), stack.between_dropout, stack.output_dropout, locked=locked)

    def forward(self, source: Source) -> Reading:
        """Read symbols [S, B]."""
        padding = _Padding(source.mask)
        outputs, final = self.encoder(source.symbols), []
        for directions, drop in zip(self._directions(), self.dropouts, strict=True):
            read = [_read(layer, outputs, padding, backward=bool(n)) for n, layer in enumerate(directions)]
            outputs = drop(torch.cat([one for one, _ in read], -1))
            final.append(tuple(torch.cat(slots, -1) for slots in zip(*(state for _, state in read), strict=True)))
        return Reading(outputs, source.mask, tuple(final))

    def initialise(self, rules: config.Initialisation) -> None:
        """Fill the layers, bottom first; the encoder may be the target's and is filled by the model."""
        for directions in self._directions():
            for layer in directions:
                layer.initialise(rules)

    def _directions(self) -> list[list[Layer]]:
        return [[layer for layer in both.children() if isinstance(layer, Layer)] for both in self.layers]


def sentence_reader(
    stack: config.Stack, input_size: int, where: str, *, locked: bool, bidirectional: bool = True
) -> SourceReader:
    """Layers over whole sentences of vectors; raises UserError where those under the key `where` cannot be a reader's.

    The symbols of its sources are vectors [S, B, I], which are read as they are.
    """
    require_plain(stack, where)
    as_they_are = build_encoder(config.Values(), input_size, locked=locked)
    return SourceReader(config.Reader(stack=stack, bidirectional=bidirectional), as_they_are, locked=locked)


class _Padding:
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
    """Weights and inputs with one more column, which at padded steps keeps the cell of an LSTM unchanged.

    The output h of a layer is known at every step, so that of the last symbol can be looked up. The cell c is known
    only after the last step, which may be padding: there the extra column forces the gates to keep it, exactly.
    """
    held = HOLDING_GATES[layer.cell.gates, layer.cell.slots]
    if not held:
        return weights, xs
    column = xs.new_tensor(held).repeat_interleave(layer.hidden_size).unsqueeze(1)
    return weights._replace(input=torch.cat([weights.input, column], 1)), torch.cat([xs, flags.to(xs.dtype)], -1)


def require_plain(stack: config.Stack, where: str) -> None:
    """Raises UserError where the layers described under the key `where` cannot be a reader's or a decoder's."""
    cell = stack.cell
    plain = isinstance(cell, config.Elman | config.GRU) or (isinstance(cell, config.LSTM) and cell.input_gate == "free")
    if not plain:
        raise UserError(
            f"{where}.cell: readers and decoders have the cells elman, gru, or lstm with a free input gate; use one of"
            " them"
        )
    if stack.input_dropout or stack.gate_masks:
        name = "input_dropout" if stack.input_dropout else "gate_masks"
        raise UserError(
            f"{where}.{name} masks the products of a language model's layers; with a source leave it out, and use"
            " between_dropout or the dropout of the encoder"
        )
    if stack.connections != "chain":
        raise UserError(
            f'{where}.connections = "{stack.connections}": the layers of readers and decoders stand in a chain;'
            ' set connections = "chain"'
        )
