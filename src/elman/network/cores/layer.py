"""One recurrent layer: the weights of a cell, the dropout of its products and weights, and sequences with padding.

No result depends on padding, which follows each sequence.
"""

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from elman import config
from elman.network import dropout
from elman.network.cells.cell import Cell, Gated, LayerState, Scan, Step, Weights, unroll
from elman.network.cores.core import RecurrentCore
from elman.network.fast import policy
from elman.network.fast.matmul import without_autocast
from elman.network.initialisation import fill
from elman.network.state import State, as_type


class Layer(nn.Module):
    """The weights of one cell, with `biases` bias vectors per gate: 0, 1 (Zaremba) or 2 (torch, cuDNN).

    `weight_drop` is the rate of DropConnect on the recurrent weights, one mask per call (Merity et al. 2018);
    `input_dropout` and `recurrent_dropout` are rates of masks on x_t and h_{t-1} in the products: `locked` ones held
    over time (Gal & Ghahramani 2016), else drawn at every step; with `gate_masks` each gate has masks of its own. A
    `first` layer reads the vectors of symbols, whose product with the weights stays float32 where others are bf16:
    rounding it would be most of the error of a gradient (docs/cost.md).
    """

    weight_ih: nn.Parameter
    weight_hh: nn.Parameter | None
    bias_ih: nn.Parameter | None
    bias_hh: nn.Parameter | None

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
        self.cell, self.input_size, self.hidden_size = cell, input_size, hidden_size
        self.weight_drop, self.input_dropout, self.recurrent_dropout = weight_drop, input_dropout, recurrent_dropout
        self.gate_masks, self.locked, self.first = gate_masks, locked, first
        self.scan: Scan = cell.scan
        self.arrays = dict(cell.arrays(input_size, hidden_size))
        self.shapes = cell.shapes(input_size, hidden_size)
        rows, input_rows = len(cell.gates) * hidden_size, len(cell.input_gates) * hidden_size
        # A single bias belongs to the product that every gate has.
        on_input = rows in (0, input_rows)
        with_input, with_hidden = (biases >= 1, biases == 2) if on_input else (biases == 2, biases >= 1)
        usual: dict[str, tuple[int, ...] | None] = {
            "weight_ih": (input_rows, input_size),
            "weight_hh": (rows, hidden_size) if cell.has_matrices else None,
            "bias_ih": (input_rows,) if with_input and input_rows else None,
            "bias_hh": (rows,) if with_hidden and rows else None,
        }
        for name, shape in (usual | {name: array.shape for name, array in self.arrays.items()}).items():
            self.register_parameter(name, None if shape is None else nn.Parameter(torch.empty(shape)))

    def weights(self) -> Weights:
        """The arrays to compute with: in training, DropConnect is applied to a copy of the recurrent weights."""
        return self.dropped(self._parameters)

    def dropped(self, arrays: Mapping[str, Tensor | None]) -> Weights:
        """The same of arrays that stand elsewhere."""
        recurrent = arrays["weight_hh"]
        if self.weight_drop and self.training:
            assert recurrent is not None
            arrays = {**arrays, "weight_hh": dropout.elementwise(recurrent, self.weight_drop)}
        return Weights.of(arrays, exact=self.first)

    def begin(self, batch: int) -> LayerState:
        return tuple(self.weight_ih.new_zeros(batch, *shape) for shape in self.shapes)

    def forward(self, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        """Outputs [T, B, H] over xs [T, B, I], and the state after them."""
        return self.run(self.weights(), xs, state)

    def run(self, weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        """As `forward`, with the result of `weights`."""
        return in_their_type(self.cell, self._run, weights, xs, state)

    def _run(self, weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
        if self.masked:
            if self.recurrent_dropout or self.gate_masks:
                return unroll(self.one_step(state[0]), weights, xs, state)
            drop = dropout.locked if self.locked else dropout.elementwise
            xs = drop(xs, self.input_dropout)
        if policy.plain(xs, self.cell) or policy.small_step(xs, weights.weight_ih, weights.weight_hh):
            return unroll(self.cell.step, weights, xs, state)
        return self.scan(weights, xs, state)

    @property
    def masked(self) -> bool:
        return self.training and bool(self.recurrent_dropout or self.input_dropout)

    def one_step(self, h: Tensor) -> Step:
        """The step of a window that begins with output h [B, H]; in training with the masks of its products."""
        if not self.masked:
            return self.cell.step
        held = self._draw(h) if self.locked else None

        def step(weights: Weights, x: Tensor, state: LayerState) -> LayerState:
            of_x, of_h = self._draw(state[0]) if held is None else held
            if self.gate_masks:
                assert isinstance(self.cell, Gated)
                z = by_gate(x, weights.weight_ih, weights.bias_ih, of_x)
                return self.cell.gated(weights, z + by_gate(state[0], weights.weight_hh, weights.bias_hh, of_h), state)
            if self.input_dropout:
                x = of_x.squeeze(1) * x
            if not self.recurrent_dropout:
                return self.cell.step(weights, x, state)
            if self.cell.masks == "products":
                return self.cell.step(weights.replaced(mask=of_h.squeeze(1)), x, state)
            return self.cell.step(weights, x, (of_h.squeeze(1) * state[0], *state[1:]))

        return step

    def _draw(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """The masks of x and of h in the products of each gate, or one for all: [B, G or 1, I] and [B, G or 1, H]."""
        count = len(self.cell.gates) if self.gate_masks else 1
        rates = ((self.input_size, self.input_dropout), (self.hidden_size, self.recurrent_dropout))
        of_x, of_h = (dropout.elementwise(h.new_ones(len(h), count, width), rate) for width, rate in rates)
        return of_x, of_h

    def initialise(self, rules: config.Initialisation) -> None:
        size = self.hidden_size
        for gate in torch.split(self.weight_ih, size):
            fill(gate, rules.input, size)
        if self.weight_hh is not None and self.cell.has_matrices:
            for letter, gate in zip(self.cell.gates, torch.split(self.weight_hh, size), strict=True):
                candidate = rules.candidate if letter == self.cell.candidate else None
                fill(gate, candidate or rules.hidden, size)
        self._fill_arrays(rules, recurrent=True)
        for vector in (self.bias_ih, self.bias_hh):
            if vector is not None:
                fill(vector, rules.bias, size)
        self._fill_arrays(rules, recurrent=False)
        if rules.forget_bias is not None:
            self._set_forget_bias(rules.forget_bias)

    @torch.no_grad()
    def _fill_arrays(self, rules: config.Initialisation, *, recurrent: bool) -> None:
        for name, array in self.arrays.items():
            if array.recurrent != recurrent:
                continue
            parameter = self.get_parameter(name)
            if callable(array.start):
                array.start(parameter)
            elif array.start == "bias":
                fill(parameter, rules.bias, self.hidden_size)
            else:
                rule = rules.input if isinstance(array.start, str) else array.start
                fill(parameter, rule, parameter.shape[-1])

    @torch.no_grad()
    def _set_forget_bias(self, bias: float) -> None:
        """Set the sum of the biases of gates that keep the old state: `bias`, or -`bias` if they keep it when shut."""
        letters = self.cell.gates or self.cell.input_gates
        for letter, sign in self.cell.keeps:
            start = letters.index(letter) * self.hidden_size
            rest = sign * bias
            for vector in (self.bias_ih, self.bias_hh):
                if vector is not None and start < len(vector):
                    vector[start : start + self.hidden_size], rest = rest, 0.0


def in_their_type(cell: Cell, run: Scan, weights: Weights, xs: Tensor, state: LayerState) -> tuple[Tensor, LayerState]:
    """The results of `run` in the type of the weights, under autocast too.

    Of 16 bits all is computed in float32 and rounded at the end, except by the kernels of CUDA's library.
    """
    dtype, device = weights.weight_ih.dtype, "cpu" if xs.is_cpu or xs.is_meta else xs.device.type
    widened = dtype.itemsize == 2 and not (xs.is_cuda and cell.name in policy.OPERATORS)
    if xs.dtype == dtype and not (widened or torch.is_autocast_enabled(device)):
        return run(weights, xs, state)
    within = torch.float32 if widened else dtype
    if widened:
        weights = weights.replaced(**{name: array.to(within) for name, array in weights.tensors().items()})
    with without_autocast(xs):
        outputs, after = run(weights, as_type(xs, within), tuple(as_type(part, within) for part in state))
    return outputs.to(dtype), tuple(part.to(dtype) for part in after)


Module = TypeVar("Module", bound=nn.Module)


def take_plain_steps(module: Module) -> Module:
    """Let every layer of a module use the plain step of its cell instead of the fast function over time; the module."""
    for part in module.modules():
        if isinstance(part, Layer):
            part.scan = partial(unroll, part.cell.step)
    return module


def by_gate(x: Tensor, weight: Tensor, bias: Tensor | None, masks: Tensor) -> Tensor:
    """W_g (m_g * x) + b_g of every gate, [B, G*H]: x [B, I], weight [G*H, I], bias [G*H] or None, masks m [B, G, I]."""
    blocks = weight.unflatten(0, (masks.shape[1], -1))
    z = torch.einsum("bgi,ghi->bgh", masks * x.unsqueeze(1), blocks).flatten(1)
    return z if bias is None else z + bias


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

    The output h of a layer is known at every step, and h at the last symbol can be looked up. The cell c is known
    only after the last step, which may be padding: there the extra column forces the gates to keep it, exactly.
    """
    if len(layer.shapes) == 1:
        return weights, xs
    held = [HOLDING.get(gate, 0.0) for gate in layer.cell.gates]
    column = xs.new_tensor(held).repeat_interleave(layer.hidden_size).unsqueeze(1)
    return weights.replaced(weight_ih=torch.cat([weights.weight_ih, column], 1)), torch.cat(
        [xs, flags.to(xs.dtype)], -1
    )


Transition: TypeAlias = Callable[[Tensor, State], State]
"""(x [B, E], state) -> the state after one step."""


def plain_step(core: RecurrentCore) -> Transition:
    """The step of a copy of the core in float64, without dropout; it can be differentiated forwards and backwards."""
    copied = take_plain_steps(copy.deepcopy(core).double().eval())
    return lambda x, state: copied(x.unsqueeze(0), state)[1]
