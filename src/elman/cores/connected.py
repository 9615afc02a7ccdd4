"""Layers with connections that skip some of them: the deep LSTM of Graves and the skip connections of Melis."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from elman import dropout
from elman.cores.core import RecurrentCore, Trace
from elman.cores.stack import Layer
from elman.state import State

Connections = Literal["graves", "melis"]


def input_sizes(connections: Connections | Literal["chain"], input_size: int, sizes: Sequence[int]) -> list[int]:
    """The widths of what each layer reads, bottom first."""
    below = [input_size, *sizes[:-1]]
    return [below[0], *(input_size + size for size in below[1:])] if connections == "graves" else below


class ConnectedStack(RecurrentCore):
    """Layers in a row, and a last level that is made from all of them.

    "graves" (Graves 2013, eqs 1-3): every layer above the first reads [x; the layer below], and the last level is the
    concatenation of all layers, so that the output layer has weights for each. "melis" (Melis, Dyer & Blunsom 2018;
    the published code): layers read the one below, and the last level is the sum of all layers, which have one width.

    Level 0 is x, level l the output of layer l, and the level above the layers is what the output layer reads.

    Args:
        layers: bottom first, with inputs of `input_sizes`.
        connections: see above.
        between: dropout rate on what layers read from each other.
        after: dropout rate on the last level.
        locked: masks held over time.

    """

    def __init__(
        self,
        layers: Sequence[Layer],
        connections: Connections,
        *,
        between: float = 0.0,
        after: float = 0.0,
        locked: bool = True,
    ) -> None:
        super().__init__()
        self.layers, self.connections = nn.ModuleList(layers), connections
        sizes = [layer.hidden_size for layer in layers]
        assert connections == "graves" or len(set(sizes)) == 1, "only layers of one width can be added up"
        self.dims = (layers[0].weight_ih.shape[1], *sizes, sum(sizes) if connections == "graves" else sizes[0])
        self.between, self.after = between, after
        self.drop = dropout.locked if locked else dropout.elementwise

    def begin(self, batch: int) -> State:
        """Zeros for every layer."""
        return tuple(layer.begin(batch) for layer in self.layers)  # type: ignore[operator]

    def forward(self, x: Tensor, state: State) -> tuple[Trace, State]:
        """Run the layers over x [T, B, E]."""
        levels, raw, after = [x], [x], []
        for index, (layer, before) in enumerate(zip(self.layers, state, strict=True)):
            sees_input = index and self.connections == "graves"
            outputs, new = layer(torch.cat([x, levels[-1]], dim=-1) if sees_input else levels[-1], before)
            raw.append(outputs)
            levels.append(self._dropped(outputs, self.between))
            after.append(new)
        top = torch.cat(raw[1:], dim=-1) if self.connections == "graves" else torch.stack(raw[1:]).sum(0)
        return Trace((*levels, self._dropped(top, self.after)), (*raw, top)), tuple(after)

    def _dropped(self, outputs: Tensor, rate: float) -> Tensor:
        return self.drop(outputs, rate if self.training else 0.0)
