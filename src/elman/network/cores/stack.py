"""Recurrent layers one above the other (thesis 2.23), with the dropout of AWD-LSTM (Merity et al. 2018).

They stand in a chain, or with the connections that skip layers of Graves (2013) and of Melis et al. (2018).
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from msgspec import Meta
from torch import Tensor, nn

from elman import config
from elman.config.parts import OneOf
from elman.config.record import Positive, Rate
from elman.errors import UserError
from elman.network.cells.cell import Cell, Gated, LayerState, Step, Weights, checked
from elman.network.cells.lstm import LSTM
from elman.network.cores.core import RecurrentCore, Surroundings, Trace
from elman.network.cores.layer import Layer
from elman.network.dropout import Dropout
from elman.network.state import State

Connections = Literal["chain", "graves", "melis"]


class Stack(config.Core, frozen=True, tag="stack"):
    """Layers of one cell, in a chain or with connections that skip layers; `biases`: bias vectors per gate.

    `input_dropout` and `recurrent_dropout` mask x and h in the products of every layer, by one mask for all gates, or
    with `gate_masks` one for each.
    """

    sizes: Annotated[tuple[Positive, ...], Meta(min_length=1, max_length=1000)]
    cell: OneOf[Cell] = LSTM()
    connections: Connections = "chain"
    biases: Literal[0, 1, 2] = 2
    weight_drop: Rate = 0.0
    input_dropout: Rate = 0.0
    recurrent_dropout: Rate = 0.0
    gate_masks: bool = False
    between_dropout: Rate = 0.0
    output_dropout: Rate = 0.0

    def build(self, surroundings: Surroundings) -> "Layers":
        """The layers; raises UserError where layers that are added up differ in width."""
        if self.connections == "chain":
            return build_stack(self, surroundings.input_size, locked=surroundings.locked)
        return ConnectedStack(self, surroundings)


class Layers(RecurrentCore):
    """Layers, bottom first; the state has one part per layer."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def begin(self, batch: int) -> State:
        return tuple(layer.begin(batch) for layer in layers_of(self))

    def initialise(self, rules: config.Initialisation) -> None:
        for layer in layers_of(self):
            layer.initialise(rules)


class StackCore(Layers):
    """A chain of layers, bottom first.

    `between_dropout` is the rate on the output of every layer but the last, `output_dropout` that on the last one's;
    `locked` masks are held over time (Gal), others drawn per element (Zaremba).
    """

    def __init__(
        self, layers: Sequence[Layer], *, between_dropout: float = 0.0, output_dropout: float = 0.0, locked: bool = True
    ) -> None:
        super().__init__(layers)
        self.dims = (layers[0].weight_ih.shape[1], *(layer.hidden_size for layer in layers))
        self.dropouts = dropouts(len(layers), between_dropout, output_dropout, locked=locked)

    def forward(self, x: Float[Tensor, "T B E"], state: State) -> tuple[Trace, State]:
        levels, raw, after = [x], [x], []
        for layer, drop, before in zip(self.layers, self.dropouts, state, strict=True):
            outputs, new = layer(levels[-1], before)
            raw.append(outputs)
            levels.append(drop(outputs))
            after.append(new)
        return Trace(tuple(levels), tuple(raw)), tuple(after)

    def stepwise(self, state: Sequence[LayerState]) -> list[tuple[Step, Weights]]:
        """The step and the weights of each layer, for a caller that loops over the window itself."""
        return [
            (layer.one_step(before[0]), layer.weights()) for layer, before in zip(layers_of(self), state, strict=True)
        ]

    def masks(self, x: Tensor) -> list[Tensor | None]:
        """The dropout mask of each layer's outputs over a window x [T, B, _]; None: nothing is dropped."""
        return [drop.mask(x, size) for size, drop in zip(self.dims[1:], self.dropouts, strict=True)]  # type: ignore[operator]


def dropouts(num_layers: int, between: float, output: float, *, locked: bool) -> nn.ModuleList:
    """One `Dropout` per layer: between the layers, and on the last one's output."""
    return nn.ModuleList(Dropout(rate, locked=locked) for rate in (*[between] * (num_layers - 1), output))


class ConnectedStack(Layers):
    """Layers in a row, and a last level that joins all of them.

    "graves" (Graves 2013, eqs 1-3): every layer above the first reads [x; the layer below], and the last level is the
    concatenation of all layers, so that the output layer has weights for each. "melis" (Melis, Dyer & Blunsom 2018;
    the published code): layers read the one below, and the last level is the sum of all layers, which have one width.

    Level 0 is x, level l the output of layer l, and the level above the layers is what the output layer reads.
    """

    def __init__(self, record: Stack, surroundings: Surroundings) -> None:
        connections, sizes = record.connections, record.sizes
        if connections == "melis" and len(set(sizes)) > 1:
            raise UserError(
                'model.core.connections = "melis" adds the layers up, so model.core.sizes must be equal, but they are'
                f" {list(sizes)}"
            )
        super().__init__(_layers(record, connections, surroundings.input_size, locked=surroundings.locked))
        self.connections = connections
        self.dims = (surroundings.input_size, *sizes, sum(sizes) if connections == "graves" else sizes[0])
        self.between_dropout = Dropout(record.between_dropout, locked=surroundings.locked)
        self.output_dropout = Dropout(record.output_dropout, locked=surroundings.locked)

    def forward(self, x: Float[Tensor, "T B E"], state: State) -> tuple[Trace, State]:
        levels, raw, after = [x], [x], []
        for index, (layer, before) in enumerate(zip(self.layers, state, strict=True)):
            sees_input = index and self.connections == "graves"
            outputs, new = layer(torch.cat([x, levels[-1]], dim=-1) if sees_input else levels[-1], before)
            raw.append(outputs)
            levels.append(self.between_dropout(outputs))
            after.append(new)
        top = torch.cat(raw[1:], dim=-1) if self.connections == "graves" else torch.stack(raw[1:]).sum(0)
        return Trace((*levels, self.output_dropout(top)), (*raw, top)), tuple(after)


def build_stack(record: Stack, input_size: int, *, locked: bool) -> StackCore:
    """A chain of layers, whatever `record.connections` is."""
    layers = _layers(record, "chain", input_size, locked=locked)
    return StackCore(
        layers, between_dropout=record.between_dropout, output_dropout=record.output_dropout, locked=locked
    )


def _layers(record: Stack, connections: Connections, input_size: int, *, locked: bool) -> list[Layer]:
    beside = input_size if connections == "graves" else 0
    widths = (input_size, *(beside + size for size in record.sizes))
    return [
        build_layer(record, below, size, locked=locked, first=index == 0)
        for index, (below, size) in enumerate(zip(widths, record.sizes, strict=False))
    ]


def build_layer(record: Stack, below: int, size: int, *, locked: bool, first: bool = False) -> Layer:
    """One layer of width `size` on vectors of width `below`, the `first` or not.

    Raises UserError where its cell has no recurrent dropout, no masks by gate, or weights of which none can be dropped.
    """
    cell, recurrent_dropout = checked(record.cell), record.recurrent_dropout
    if record.weight_drop and not cell.has_matrices:
        instead = "" if cell.masks is None else ", or use model.core.recurrent_dropout"
        raise UserError(
            f"model.core.weight_drop drops elements of a recurrent matrix, and the cell {cell.name} has none; set it to"
            f" 0{instead}"
        )
    if record.gate_masks and not isinstance(cell, Gated):
        raise UserError(
            "model.core.gate_masks gives each gate masks of its own in the products with x and h, which the cell"
            f" {cell.name} has in another form; set it to false, or use the cell lstm, elman or ladder"
        )
    if recurrent_dropout and cell.masks is None:
        raise UserError(
            "model.core.recurrent_dropout masks the output in products with recurrent weights, "
            + (
                f"and there the cell {cell.name} cannot mask it alone, since its step reads the output in other places"
                " too; use model.core.weight_drop, or the cell lstm or elman"
                if cell.has_matrices
                else f"and the cell {cell.name} has none; set it to 0, or use model.core.input_dropout"
            )
        )
    return Layer(
        cell,
        below,
        size,
        biases=record.biases,
        weight_drop=record.weight_drop,
        input_dropout=record.input_dropout,
        recurrent_dropout=recurrent_dropout,
        gate_masks=record.gate_masks,
        locked=locked,
        first=first,
    )


def stack_of(core: RecurrentCore, what: str) -> StackCore:
    """The core as a stack; raises UserError where it is none, and `what` needs one."""
    if not isinstance(core, StackCore):
        raise UserError(f'{what} needs layers in a chain: model.core.kind = "stack", model.core.connections = "chain"')
    return core


def layers_of(core: Layers) -> list[Layer]:
    """The layers, bottom first."""
    return [layer for layer in core.layers if isinstance(layer, Layer)]


def _candidate(stacked: Tensor, layer: Layer) -> Tensor:
    assert layer.cell.candidate is not None
    start = (layer.cell.gates or layer.cell.input_gates).index(layer.cell.candidate) * layer.hidden_size
    return stacked[start : start + layer.hidden_size]


def candidate_hidden(layer: Layer) -> Tensor:
    """W_hh [H, H] of the candidate state, as a view: n of a GRU, g of an LSTM, all of Elman's."""
    assert layer.cell.has_matrices, "a cell without recurrent matrices"
    assert layer.weight_hh is not None
    return _candidate(layer.weight_hh, layer)


def candidate_input(layer: Layer) -> Tensor:
    """W_xh [H, I] of the candidate state, as a view."""
    return _candidate(layer.weight_ih, layer)


def linearised(layer: Layer) -> Tensor:
    """The Jacobian at h = 0 without input and biases: W_hh / 4 + I / 2 (thesis 3.4), or s W_hh for Elman's network.

    s is the slope of its nonlinearity at 0: 1, or 1/4 for the sigmoid, of which h = 0 is no fixed point.
    For a bias-free LSTM this is the matrix that maps c to c': f I + i o U_g with gates of 1/2.
    """
    block = candidate_hidden(layer)
    if len(layer.cell.gates) == 1:
        return slope_of(layer) * block
    return block / 4 + block.new_ones(len(block)).div(2).diag()


def slope_of(layer: Layer) -> float:
    """The largest slope of the nonlinearity of Elman's network: 1 for tanh and ReLU, 1/4 for the sigmoid."""
    with torch.enable_grad():
        z = torch.full((), 1e-9, dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(nonlinearity(layer, z), z)
    return float(slope)


def nonlinearity(layer: Layer, z: Tensor) -> Tensor:
    """The nonlinearity of Elman's network at a pre-activation z, a scalar."""
    one = torch.ones(1, 1, dtype=z.dtype)
    return layer.cell.step(Weights(one, one), z.reshape(1, 1), (torch.zeros(1, 1, dtype=z.dtype),))[0].sum()
