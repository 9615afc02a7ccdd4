"""Recurrent layers one above the other (thesis 2.23), with the dropout of AWD-LSTM (Merity et al. 2018)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elman import dropout
from elman.cells.cell import Cell, LayerState, Step, Weights, unroll
from elman.cores.core import RecurrentCore, Trace
from elman.state import State


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
