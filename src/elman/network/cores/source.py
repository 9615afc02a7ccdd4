"""Layers that read a whole source before the target begins, in one direction or both (Schuster & Paliwal 1997)."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from elman import config
from elman.config.record import Record
from elman.data.batches import Source
from elman.errors import UserError
from elman.network.cells.cell import LayerState
from elman.network.cells.elman import Elman
from elman.network.cells.gru import GRU
from elman.network.cells.lstm import LSTM
from elman.network.cores.deep_memory import DeepMemory, MemoryLayer
from elman.network.cores.layer import Layer, Padding, read_padded
from elman.network.cores.stack import Stack, build_layer, dropouts
from elman.network.encoders.encoder import TokenEncoder, build_encoder
from elman.network.encoders.lookup import Lookup
from elman.network.encoders.values import Values


class Reader(Record, frozen=True):
    """The layers that read the source; `stack.sizes` holds the size of each direction.

    `memories` are layers of memory over the last of them, whose controllers have the cell of the stack. Without an
    `encoder` the source is read with the target's vectors, which needs one vocabulary for both. `start`: each layer of
    the decoder begins with the final state of the reader's layer, or with a map of the last layer's.
    """

    stack: Stack
    encoder: Lookup | None = None
    bidirectional: bool = True
    memories: tuple[MemoryLayer, ...] = ()
    start: Literal["copy", "bridge"] = "copy"

    @property
    def memory_size(self) -> int:
        return self.memories[-1].size if self.memories else (1 + self.bidirectional) * self.stack.sizes[-1]


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
    directions together, the layers of memory last.
    """

    def __init__(self, record: Reader, encoder: TokenEncoder, *, locked: bool) -> None:
        super().__init__()
        stack, directions = record.stack, 2 if record.bidirectional else 1
        self.encoder = encoder
        self.sizes = tuple(directions * size for size in stack.sizes)
        self.layers = nn.ModuleList(
            nn.ModuleList(build_layer(stack, below, size, locked=locked, first=index == 0) for _ in range(directions))
            for index, (below, size) in enumerate(zip((encoder.size, *self.sizes), stack.sizes, strict=False))
        )
        self.dropouts = dropouts(len(self.sizes), stack.between_dropout, stack.output_dropout, locked=locked)
        widths = (self.sizes[-1], *(one.size for one in record.memories))
        self.memories = nn.ModuleList(
            DeepMemory(one, stack.cell, below, locked=locked)
            for one, below in zip(record.memories, widths, strict=False)
        )
        self.sizes += widths[1:]

    def forward(self, source: Source, padding: Padding | None = None) -> Reading:
        """Read symbols [S, B]; `padding`: of the mask, where it is known."""
        padding = padding or Padding(source.mask)
        outputs, final = self.encoder(source.symbols), []
        for directions, drop in zip(self._directions(), self.dropouts, strict=True):
            read = [read_padded(layer, outputs, padding, backward=bool(n)) for n, layer in enumerate(directions)]
            outputs = drop(torch.cat([one for one, _ in read], -1))
            final.append(tuple(torch.cat(slots, -1) for slots in zip(*(state for _, state in read), strict=True)))
        for memory in self.memories:
            outputs, state = memory(outputs, source.mask, padding)
            final.append(state)
        return Reading(outputs, source.mask, tuple(final))

    def initialise(self, rules: config.Initialisation) -> None:
        """Fill the layers, bottom first, then the memories; the encoder may be the target's, which the model fills."""
        for directions in self._directions():
            for layer in directions:
                layer.initialise(rules)
        for memory in self.memories.children():
            assert isinstance(memory, DeepMemory)
            memory.initialise(rules)

    def _directions(self) -> list[list[Layer]]:
        return [[layer for layer in both.children() if isinstance(layer, Layer)] for both in self.layers]


def sentence_reader(
    stack: Stack, input_size: int, where: str, *, locked: bool, bidirectional: bool = True
) -> SourceReader:
    """Layers over whole sentences of vectors; raises UserError where those under the key `where` cannot be a reader's.

    The symbols of its sources are vectors [S, B, I], which are read as they are.
    """
    require_plain(stack, where)
    as_they_are = build_encoder(Values(), input_size, locked=locked)
    return SourceReader(Reader(stack=stack, bidirectional=bidirectional), as_they_are, locked=locked)


def require_plain(stack: Stack, where: str) -> None:
    """Raises UserError where the layers described under the key `where` cannot be a reader's or a decoder's."""
    cell = stack.cell
    plain = isinstance(cell, Elman | GRU) or (isinstance(cell, LSTM) and cell.input_gate == "free")
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
