"""One recurrent layer: the weights of a cell, and the dropout of its products and weights."""

from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, nn

from elman import config
from elman.errors import UserError
from elman.network import dropout, matmul, precision
from elman.network.cells.build import build_cell
from elman.network.cells.cell import Cell, LayerState, Step, Weights, unroll
from elman.network.initialisation import fill

if TYPE_CHECKING:
    from elman.network.cores.stack import Stack


class Layer(nn.Module):
    """The weights of one cell, with `biases` bias vectors per gate: 0, 1 (Zaremba) or 2 (torch, cuDNN).

    `weight_drop` is the rate of DropConnect on the recurrent weights, one mask per call (Merity et al. 2018), and
    `input_dropout` and `recurrent_dropout` those of masks on x_t and h_{t-1} in the products: `locked` ones held over
    time (Gal & Ghahramani 2016), else drawn at every step; with `gate_masks` each gate has masks of its own. A `first`
    layer reads the vectors of symbols, whose product with the weights stays float32 where others are bf16: rounding it
    would be most of the error of a gradient (docs/cost.md).
    """

    def __init__(
        self,
        cell: Cell,
        input_size: int,
        hidden_size: int,
        *,
        biases: int = 2,
        weight_drop: float = 0.0,
        input_dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        gate_masks: bool = False,
        locked: bool = True,
        first: bool = False,
    ) -> None:
        super().__init__()
        rows = cell.gates * hidden_size
        input_rows = rows if cell.input_gates is None else cell.input_gates * hidden_size
        self.cell, self.input_size, self.hidden_size = cell, input_size, hidden_size
        self.weight_drop, self.input_dropout, self.recurrent_dropout = weight_drop, input_dropout, recurrent_dropout
        self.gate_masks, self.locked, self.first = gate_masks, locked, first
        self.weight_ih = nn.Parameter(torch.empty(input_rows, input_size))
        recurrent = (rows, hidden_size) if cell.structured is None else cell.structured.shape(hidden_size)
        self.weight_hh = nn.Parameter(torch.empty(recurrent)) if cell.recurrent else None
        # A single bias belongs to the product that every gate has.
        on_input = rows in (0, input_rows)
        with_input, with_hidden = (biases >= 1, biases == 2) if on_input else (biases == 2, biases >= 1)
        self.bias_ih = nn.Parameter(torch.empty(input_rows)) if with_input and input_rows else None
        self.bias_hh = nn.Parameter(torch.empty(rows)) if with_hidden and rows else None
        self.peephole = nn.Parameter(torch.empty(3, hidden_size)) if cell.peepholes else None
        self.arrays = () if cell.extra is None else cell.extra(input_size, hidden_size)
        parameters = [nn.Parameter(torch.empty(array.shape)) for array in self.arrays]
        self.extra = None if cell.extra is None else nn.ParameterList(parameters)
        self.shapes = cell.shapes(input_size, hidden_size)

    def weights(self) -> Weights:
        """The arrays to compute with: in training, DropConnect is applied to a copy of the recurrent weights."""
        if self.weight_hh is None:
            hidden = self.weight_ih.new_empty(0, self.hidden_size)
        else:
            hidden = dropout.elementwise(self.weight_hh, self.weight_drop if self.training else 0.0)
        extra = None if self.extra is None else tuple(self.extra)
        return Weights(self.weight_ih, hidden, self.bias_ih, self.bias_hh, self.peephole, extra, exact=self.first)

    def begin(self, batch: int) -> LayerState:
        """Zeros."""
        return tuple(self.weight_ih.new_zeros(batch, *shape) for shape in self.shapes)

    def forward(self, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        """Outputs [T, B, H] over xs [T, B, I], and the state after them."""
        return self.run(self.weights(), xs, state)

    def run(self, weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        """As `forward`, with the result of `weights`. All is computed in their type, under autocast too."""
        dtype, device = weights.input.dtype, xs.device.type
        if xs.dtype == dtype and not torch.is_autocast_enabled(device):
            return self._run(weights, xs, state)
        with torch.autocast(device, enabled=False):
            return self._run(weights, xs.to(dtype), tuple(part.to(dtype) for part in state))

    def _run(self, weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        if self._masked and (self.recurrent_dropout or self.gate_masks):
            return unroll(self.one_step(state[0]), weights, xs, state)
        if self._masked:
            drop = dropout.locked if self.locked else dropout.elementwise
            xs = drop(xs, self.input_dropout)
        if self.cell.sequence is None or _is_small_step(weights, xs):
            return unroll(self.cell.step, weights, xs, state)
        return self.cell.sequence(weights, xs, state)

    @property
    def _masked(self) -> bool:
        return self.training and bool(self.recurrent_dropout or self.input_dropout)

    def one_step(self, h: Tensor) -> Step:
        """The step of a window that begins with output h [B, H]; in training with the masks of its products."""
        if not self._masked:
            return self.cell.step
        held = self._draw(h) if self.locked else None

        def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
            of_x, of_h = self._draw(state[0]) if held is None else held
            if self.gate_masks:
                assert self.cell.gated is not None
                z = by_gate(x, weights.input, weights.input_bias, of_x)
                return self.cell.gated(weights, z + by_gate(state[0], weights.hidden, weights.hidden_bias, of_h), state)
            if self.input_dropout:
                x = of_x.squeeze(1) * x
            if not self.recurrent_dropout:
                return self.cell.step(weights, x, state)
            if self.cell.masks == "products":
                return self.cell.step(weights._replace(mask=of_h.squeeze(1)), x, state)
            return self.cell.step(weights, x, (of_h.squeeze(1) * state[0], *state[1:]))

        return step

    def _draw(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """The masks of x and of h in the products of each gate, or one for all: [B, G or 1, I] and [B, G or 1, H]."""
        count = self.cell.gates if self.gate_masks else 1
        rates = ((self.input_size, self.input_dropout), (self.hidden_size, self.recurrent_dropout))
        of_x, of_h = (dropout.elementwise(h.new_ones(len(h), count, width), rate) for width, rate in rates)
        return of_x, of_h

    def initialise(self, rules: config.Initialisation) -> None:
        """Fill the parameters, gate by gate."""
        size = self.hidden_size
        for gate in torch.split(self.weight_ih, size):
            fill(gate, rules.input, size)
        if self.cell.structured is not None:
            assert self.weight_hh is not None
            with torch.no_grad():
                self.cell.structured.fill(self.weight_hh)
        elif self.weight_hh is not None:
            for index, gate in enumerate(torch.split(self.weight_hh, size)):
                candidate = rules.candidate if index == self.cell.candidate else None
                fill(gate, candidate or rules.hidden, size)
        for vector in (self.bias_ih, self.bias_hh, self.peephole):
            if vector is not None:
                fill(vector, rules.bias, size)
        for parameter, array in zip(self.extra or (), self.arrays, strict=True):
            if callable(array.start):
                with torch.no_grad():
                    array.start(parameter)
            else:
                fill(parameter, array.start or rules.input, parameter.shape[-1])
        if rules.forget_bias is not None:
            self._set_forget_bias(rules.forget_bias)

    @torch.no_grad()
    def _set_forget_bias(self, bias: float) -> None:
        """Set the sum of the biases of gates that keep the old state: `bias`, or -`bias` if they keep it when shut."""
        for block, sign in self.cell.keeps:
            rows = slice(block * self.hidden_size, (block + 1) * self.hidden_size)
            rest = sign * bias
            for vector in (self.bias_ih, self.bias_hh):
                if vector is not None and rows.start < len(vector):
                    vector[rows], rest = rest, 0.0


def _is_small_step(weights: Weights, xs: Tensor) -> bool:
    """Whether xs [T, B, I] are one step with small products of float32 on a CPU, and no gradient is asked for.

    What a fast form prepares for many steps then costs more than it saves. Exported programs are not of one step alone.
    """
    if torch.compiler.is_compiling() or torch.is_grad_enabled() or len(xs) > 1:
        return False
    if xs.device.type != "cpu" or precision.chosen() != "float32":
        return False
    return not any(matmul.is_large(factor, xs.shape[1]) for factor in (weights.input, weights.hidden))


Module = TypeVar("Module", bound=nn.Module)


def take_plain_steps(module: Module) -> Module:
    """Let every layer of a module use the plain step of its cell instead of the fast function over time; the module."""
    for part in module.modules():
        if isinstance(part, Layer):
            part.cell = part.cell._replace(sequence=None)
    return module


def build_layer(record: "Stack", below: int, size: int, *, locked: bool, first: bool = False) -> Layer:
    """One layer of width `size` on vectors of width `below`, the `first` or not.

    Raises UserError where its cell has no recurrent dropout, no masks by gate, or weights of which none can be dropped.
    """
    cell, recurrent_dropout = build_cell(record.cell), record.recurrent_dropout
    has_matrices = cell.recurrent and cell.structured is None
    if record.weight_drop and not has_matrices:
        instead = "" if cell.masks is None else ", or use model.core.recurrent_dropout"
        raise UserError(
            f"model.core.weight_drop drops elements of a recurrent matrix, and the cell {cell.name} has none; set it to"
            f" 0{instead}"
        )
    if record.gate_masks and cell.gated is None:
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
                if has_matrices
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


def by_gate(x: Tensor, weight: Tensor, bias: Tensor | None, masks: Tensor) -> Tensor:
    """W_g (m_g * x) + b_g of every gate, [B, G*H]: x [B, I], weight [G*H, I], bias [G*H] or None, masks m [B, G, I]."""
    blocks = weight.unflatten(0, (masks.shape[1], -1))
    z = torch.einsum("bgi,ghi->bgh", masks * x.unsqueeze(1), blocks).flatten(1)
    return z if bias is None else z + bias
