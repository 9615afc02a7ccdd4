"""Recurrent layers one above the other (thesis 2.23), with the dropout of AWD-LSTM (Merity et al. 2018)."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from elman.network import dropout
from elman.network.cells.cell import Cell, LayerState, Step, Weights, unroll
from elman.network.cores.core import RecurrentCore, Trace
from elman.network.state import State


class Layer(nn.Module):
    """The weights of one cell. `biases` is how many vectors a gate has: 0, 1 (Zaremba) or 2 (torch, cuDNN).

    Args:
        cell: the equations.
        input_size: I.
        hidden_size: H.
        biases: bias vectors a gate.
        peepholes: whether the cell reads `Weights.peephole`.
        weight_drop: rate of DropConnect on the recurrent weights, one mask a call.
        recurrent_dropout: rate of a mask on h_{t-1} held over time (Gal & Ghahramani 2016).

    """

    def __init__(
        self,
        cell: Cell,
        input_size: int,
        hidden_size: int,
        *,
        biases: int = 2,
        peepholes: bool = False,
        weight_drop: float = 0.0,
        recurrent_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        rows, input_rows = cell.gates * hidden_size, (cell.input_gates or cell.gates) * hidden_size
        self.cell, self.hidden_size = cell, hidden_size
        self.weight_drop, self.recurrent_dropout = weight_drop, recurrent_dropout
        self.weight_ih = nn.Parameter(torch.empty(input_rows, input_size))
        self.weight_hh = nn.Parameter(torch.empty(rows, hidden_size))
        # The one bias of a gate stands where every gate has a product.
        with_input, with_hidden = (biases >= 1, biases == 2) if input_rows == rows else (biases == 2, biases >= 1)
        self.bias_ih = nn.Parameter(torch.empty(input_rows)) if with_input else None
        self.bias_hh = nn.Parameter(torch.empty(rows)) if with_hidden else None
        self.peephole = nn.Parameter(torch.empty(3, hidden_size)) if peepholes else None
        self.extra: nn.ParameterList | None = None
        if cell.extra is not None:
            self.extra = nn.ParameterList(
                nn.Parameter(torch.empty(shape)) for shape in cell.extra(input_size, hidden_size)
            )

    def weights(self) -> Weights:
        """The arrays to compute with: DropConnect is applied here, so weights are values and nothing is patched."""
        hidden = dropout.connections(self.weight_hh, self.weight_drop if self.training else 0.0)
        extra = None if self.extra is None else tuple(self.extra)
        return Weights(self.weight_ih, hidden, self.bias_ih, self.bias_hh, self.peephole, extra)

    def begin(self, batch: int) -> LayerState:
        """Zeros."""
        return tuple(self.weight_hh.new_zeros(batch, self.hidden_size) for _ in range(self.cell.slots))

    def forward(self, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        """Outputs [T, B, H] over xs [T, B, I], and the state after them."""
        return self.run(self.weights(), xs, state)

    def run(self, weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        """The same with weights that were taken before."""
        if self.cell.sequence is None or (self.training and self.recurrent_dropout):
            return unroll(self.one_step(state[0]), weights, xs, state)
        return self.cell.sequence(weights, xs, state)

    def one_step(self, h: Tensor) -> Step:
        """The step of a window that begins with output h [B, H]; in training with the window's recurrent dropout."""
        return self._masked_step(h) if self.training and self.recurrent_dropout else self.cell.step

    def _masked_step(self, h: Tensor) -> Step:
        mask = dropout.elementwise(torch.ones_like(h), self.recurrent_dropout)

        def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
            if self.cell.masks == "products":
                return self.cell.step(weights._replace(mask=mask), x, state)
            return self.cell.step(weights, x, (mask * state[0], *state[1:]))

        return step


class Stack(RecurrentCore):
    """Layers in a row; `between` is dropped after every layer but the last, `after` on the last.

    Args:
        layers: bottom first.
        between: dropout rate between layers.
        after: dropout rate on the last layer's output.
        locked: masks held over time (Gal); otherwise drawn for every element (Zaremba).

    """

    def __init__(
        self, layers: Sequence[Layer], *, between: float = 0.0, after: float = 0.0, locked: bool = True
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.dims = (layers[0].weight_ih.shape[1], *(layer.hidden_size for layer in layers))
        self.rates = (*[between] * (len(layers) - 1), after)
        self.drop = dropout.locked if locked else dropout.elementwise

    def begin(self, batch: int) -> State:
        """Zeros for every layer."""
        return tuple(layer.begin(batch) for layer in self.layers)  # type: ignore[operator]

    def forward(self, x: Tensor, state: State) -> tuple[Trace, State]:
        """Run the layers over x [T, B, E]."""
        levels, raw, after = [x], [x], []
        for layer, rate, before in zip(self.layers, self.rates, state, strict=True):
            outputs, new = layer(levels[-1], before)
            raw.append(outputs)
            levels.append(self.drop(outputs, rate if self.training else 0.0))
            after.append(new)
        return Trace(tuple(levels), tuple(raw)), tuple(after)

    def stepwise(self, state: Sequence[LayerState]) -> list[tuple[Step, Weights]]:
        """The step and the weights of each layer, for those who go through a window themselves."""
        pairs = zip(self.layers, state, strict=True)
        return [(layer.one_step(before[0]), layer.weights()) for layer, before in pairs]  # type: ignore[operator]

    def masks(self, x: Tensor) -> list[Tensor | None]:
        """What each layer's outputs are multiplied with over a window x [T, B, _]; None: dropout does nothing."""
        return [self.mask(x, size, rate) for size, rate in zip(self.dims[1:], self.rates, strict=True)]

    def mask(self, x: Tensor, size: int, rate: float) -> Tensor | None:
        """A mask [T, B, size] of the stack's kind."""
        return self.drop(x.new_ones(*x.shape[:2], size), rate) if rate and self.training else None


# FOLDED cores/blocks.py: The block of a layer's stacked weights that makes the candidate state, as a view.
def layers_of(core: Stack) -> list[Layer]:
    """The layers, bottom first."""
    return [layer for layer in core.layers if isinstance(layer, Layer)]


def candidate_gate(layer: Layer) -> int:
    """Its place among the gates, such as n of a GRU (r, z, n), g of an LSTM (i, f, g, o), all of Elman's."""
    return layer.cell.candidate


def gate(stacked: Tensor, index: int, size: int) -> Tensor:
    """Block `index` of `size` rows."""
    return stacked[index * size : (index + 1) * size]


def candidate_hidden(layer: Layer) -> Tensor:
    """W_hh of the candidate [H, H]."""
    return gate(layer.weight_hh, candidate_gate(layer), layer.hidden_size)


def candidate_input(layer: Layer) -> Tensor:
    """W_xh of the candidate [H, I]."""
    return gate(layer.weight_ih, candidate_gate(layer), layer.hidden_size)


def linearised(layer: Layer) -> Tensor:
    """J of the layer at h = 0 without input and biases: W_hh / 4 + I / 2 (thesis 3.4), for Elman's network W_hh.

    For a bias-free LSTM this is the matrix that takes c to c': f I + i o U_g with gates of 1/2.
    """
    block = candidate_hidden(layer)
    if layer.cell.gates == 1:
        return block
    return block / 4 + block.new_ones(len(block)).div(2).diag()


# FOLDED cores/connected.py: Layers with connections that skip some of them: the deep LSTM of Graves and the skip connections of Melis.
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
