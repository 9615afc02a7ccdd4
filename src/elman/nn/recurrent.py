"""Recurrent layers as torch modules: the arguments, results and weights of `torch.nn.LSTM`, for every cell.

T steps, B sequences, I inputs, H units of a layer, L layers, D directions. A layer's weights have torch's names,
`weight_ih_l0`, `weight_hh_l1_reverse` and so on, and the further arrays of a cell theirs, `A_log_l0`.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias, overload

import msgspec
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from elman.config.initialisation import Initialisation
from elman.config.parts import convert, tag_of
from elman.network.cells.cell import Cell, LayerState, Weights, unroll
from elman.network.cores.core import Trace
from elman.network.cores.layer import Layer
from elman.network.cores.stack import Stack, build_layer
from elman.network.dropout import Dropout

State: TypeAlias = Tensor | tuple[Any, ...]
"""What `forward` returns in addition to its outputs.

With one `hidden_size` it is in torch's form, a tensor [L D, B, H] for each part of a cell's state, alone where there is
one part. With a list of sizes, or parts that differ between layers (the input before, of a QRNN), it is one tuple of
tensors [B, ...] per layer and direction.
"""


class Recurrent(nn.Module):
    """Layers of one cell; a subclass names the cell, whose keys are further keyword arguments.

    Args:
        input_size: I
        hidden_size: H, or a list of the widths of all layers, the lowest first
        num_layers: L; with a list of widths its length
        bias: two bias vectors per gate, as in torch, or none
        batch_first: sequences are [B, T, I] and outputs [B, T, D H]
        dropout: of the outputs of every layer but the last, element by element
        bidirectional: each layer reads the sequence in both directions
        device: of the weights
        dtype: of the weights
        between_dropout: as `dropout`, with one mask held over time (Gal & Ghahramani 2016)
        output_dropout: of the outputs of the last layer, with one mask held over time
        weight_drop: DropConnect on the recurrent matrices, one mask per call (Merity et al. 2018)
        input_dropout: of the inputs in the products of every layer, with one mask held over time
        recurrent_dropout: of the outputs in the recurrent products, with one mask held over time
        gate_masks: each gate has masks of its own
        initialisation: how weights begin; None: every one in U(-1/sqrt(H), 1/sqrt(H)), as in torch

    Raises ValueError where an argument is unknown or out of its range, UserError where the cell has no such dropout.
    """

    kind: ClassVar[type[Cell]]

    def __init_subclass__(cls, cell: type[Cell] | None = None) -> None:
        """Name the cell of a class, and show its keys in the signature; without one it keeps the cell of its base."""
        super().__init_subclass__()
        if cell is None:
            return
        cls.kind = cell
        usual = list(inspect.signature(Recurrent.__init__).parameters.values())[1:-1]
        keys = [
            inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if one.required else one.default,
                annotation=one.type,
            )
            for one in msgspec.structs.fields(cell)
        ]
        cls.__signature__ = inspect.Signature([*usual, *keys])  # type: ignore[attr-defined]

    def __init__(
        self,
        input_size: int,
        hidden_size: int | Sequence[int],
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        between_dropout: float = 0.0,
        output_dropout: float = 0.0,
        weight_drop: float = 0.0,
        input_dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        gate_masks: bool = False,
        initialisation: Initialisation | None = None,
        **keys: Any,
    ) -> None:
        super().__init__()
        widths = (hidden_size,) * num_layers if isinstance(hidden_size, int) else tuple(hidden_size)
        if not isinstance(hidden_size, int) and num_layers not in (1, len(widths)):
            raise ValueError(f"num_layers is {num_layers}, but hidden_size lists {len(widths)} widths")
        if dropout and between_dropout:
            raise ValueError("dropout and between_dropout are two kinds of masks between layers; give one of them")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, len(widths)
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, dropout, bidirectional
        self.cell = self._cell(keys)
        rates = {"weight_drop": weight_drop, "input_dropout": input_dropout, "recurrent_dropout": recurrent_dropout}
        record = convert(
            {"kind": "stack", "sizes": list(widths), "biases": 2 if bias else 0, "gate_masks": gate_masks} | rates,
            Stack,
        )
        record = msgspec.structs.replace(record, cell=self.cell)
        self._between = Dropout(between_dropout or dropout, locked=not dropout)
        self._output = Dropout(output_dropout)
        self._layers: list[Layer] = []
        self._names: list[dict[str, str]] = []
        below, directions, rules = input_size, 1 + bidirectional, initialisation or Initialisation()
        with torch.device(torch.get_default_device() if device is None else device):
            for width in widths:
                for _ in range(directions):
                    self._add(build_layer(record, below, width, locked=True), rules, dtype)
                below = directions * width
        self._stacked = isinstance(hidden_size, int) and len({layer.shapes for layer in self._layers}) == 1

    def _cell(self, keys: dict[str, Any]) -> Cell:
        try:
            return convert({"kind": tag_of(self.kind), **keys}, self.kind)
        except msgspec.ValidationError as error:
            allowed = ", ".join(self.kind.__struct_fields__) or "none"
            raise ValueError(f"{type(self).__name__}: {error}; further arguments are {allowed}") from None

    def _add(self, layer: Layer, rules: Initialisation, dtype: torch.dtype | None) -> None:
        """Take the weights of a layer under torch's names; it keeps none."""
        layer.initialise(rules)
        for name, parameter in [*layer.named_parameters()]:
            kept = parameter if dtype is None else nn.Parameter(parameter.detach().to(dtype))
            self.register_parameter(name + self._suffix(len(self._layers)), kept)
            layer._parameters[name] = None
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", *layer.arrays)
        self._names.append({name: name + self._suffix(len(self._layers)) for name in names})
        self._layers.append(layer)

    def _suffix(self, place: int) -> str:
        number, direction = divmod(place, 1 + self.bidirectional)
        return f"_l{number}{'_reverse' if direction else ''}"

    def weights(self, place: int) -> Weights:
        """The arrays of one layer and direction, in torch's order; in training with DropConnect."""
        own = self._parameters
        arrays = {
            name: own[key] if key in own else getattr(self, key, None) for name, key in self._names[place].items()
        }
        return self._layers[place].dropped(arrays)

    def train(self, mode: bool = True) -> "Recurrent":
        """Set the mode of the module and of its layers."""
        for layer in self._layers:
            layer.train(mode)
        return super().train(mode)

    @property
    def fused(self) -> bool:
        """Whether the fast forms over time are used, which have first derivatives alone.

        `core.fused = False` chooses the loop over the plain step of the cell, for derivatives of any order and the
        transforms of `torch.func`. `torch.compile` and `torch.export` read the plain step in any case.
        """
        return all(layer.scan == layer.cell.scan for layer in self._layers)

    @fused.setter
    def fused(self, value: bool) -> None:
        for layer in self._layers:
            layer.scan = layer.cell.scan if value else partial(unroll, layer.cell.step)

    def flatten_parameters(self) -> None:
        """Nothing to do: weights are read where they are."""

    def extra_repr(self) -> str:
        """The sizes, and the arguments that are not the usual ones."""
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}, cell={self.cell}"

    @overload
    def forward(
        self, input: Tensor | PackedSequence, state: State | None = None, levels: Literal[False] = False
    ) -> tuple[Any, State]: ...

    @overload
    def forward(
        self, input: Tensor | PackedSequence, state: State | None = None, *, levels: Literal[True]
    ) -> tuple[Trace, State]: ...

    def forward(
        self, input: Tensor | PackedSequence, state: State | None = None, levels: bool = False
    ) -> tuple[Any, State]:
        """Outputs and the last state, as torch's recurrent modules return them.

        Args:
            input: [T, B, I], [B, T, I] if `batch_first`, [T, I] for one sequence, or packed sequences
            state: of a former call; None: sequences begin
            levels: in place of the outputs a `Trace` of the input and of every layer's outputs, each in the form of the
                input: `levels` after dropout, of which the last are the outputs, and `raw` before it; not of packed
                sequences, which raise ValueError

        Returns:
            Outputs of the last layer in the form of the input, and the state after the last step of each sequence.
        """
        if isinstance(input, PackedSequence):
            if levels:
                raise ValueError("packed sequences have no levels; call with a padded tensor")
            xs, lengths = pad_packed_sequence(input)
            trace, after = self._through(xs, self._entered(state, xs.shape[1]), lengths)
            outputs = pack_padded_sequence(trace.top, lengths, enforce_sorted=input.sorted_indices is None)
            return outputs, self._left(after)
        batched = input.dim() > 2
        if not batched:
            trace, after = self._through(input.unsqueeze(1), self._entered(state, None))
            trace = _each_of(trace, lambda level: level.squeeze(1))
        else:
            xs = input.transpose(0, 1) if self.batch_first else input
            trace, after = self._through(xs, self._entered(state, xs.shape[1]))
            if self.batch_first:
                trace = _each_of(trace, lambda level: level.transpose(0, 1))
        return trace if levels else trace.top, self._left(after, batched=batched)

    def _entered(self, state: State | None, batch: int | None) -> list[LayerState] | None:
        """The state of each layer and direction, [B, ...] each."""
        if state is None:
            return None
        if not self._stacked:
            return [tuple(part if batch else part.unsqueeze(0) for part in one) for one in state]
        parts = state if isinstance(state, tuple) else (state,)
        if batch is None:
            parts = tuple(part.unsqueeze(1) for part in parts)
        return [tuple(part[place] for part in parts) for place in range(len(self._layers))]

    def _left(self, after: list[LayerState], *, batched: bool = True) -> State:
        """The state as it is returned."""
        if not batched:
            after = [tuple(part.squeeze(0) for part in one) for one in after]
        if not self._stacked:
            return tuple(after)
        parts = tuple(torch.stack(part) if len(part) > 1 else part[0].unsqueeze(0) for part in zip(*after, strict=True))
        return parts if len(parts) > 1 else parts[0]

    def _through(
        self, xs: Tensor, states: list[LayerState] | None, lengths: Tensor | None = None
    ) -> tuple[Trace, list[LayerState]]:
        """The levels [T, B, _] over xs [T, B, I], zeros behind the ends, and the states of all layers at the ends."""
        levels, raw, after = [xs], [xs], []
        for number in range(self.num_layers):
            found = []
            for direction in range(1 + self.bidirectional):
                place = number * (1 + self.bidirectional) + direction
                given = turned(xs, lengths) if direction else xs
                outputs, last = self._one(place, given, None if states is None else states[place], lengths)
                found.append(turned(outputs, lengths) if direction else outputs)
                after.append(last)
            raw.append(torch.cat(found, dim=-1) if self.bidirectional else found[0])
            xs = (self._output if number == self.num_layers - 1 else self._between)(raw[-1])
            levels.append(xs)
        return Trace(tuple(levels), tuple(raw)), after

    def _one(
        self, place: int, xs: Tensor, state: LayerState | None, lengths: Tensor | None
    ) -> tuple[Tensor, LayerState]:
        layer, w = self._layers[place], self.weights(place)
        if state is None:
            zero = w.weight_ih.new_zeros(xs.shape[1], *layer.shapes[0])
            state = tuple(
                zero if shape == layer.shapes[0] else w.weight_ih.new_zeros(xs.shape[1], *shape)
                for shape in layer.shapes
            )
        if lengths is None:
            return layer.run(w, xs, state)
        if layer.masked:
            return held_at_ends(layer, w, xs, state, lengths)
        return by_lengths(layer, w, xs, state, lengths)


def _each_of(trace: Trace, change: Callable[[Tensor], Tensor]) -> Trace:
    return Trace(tuple(map(change, trace.levels)), tuple(map(change, trace.raw)))


def turned(xs: Tensor, lengths: Tensor | None) -> Tensor:
    """Each sequence of xs [T, B, _] from its end to its beginning; what follows it stays."""
    if lengths is None:
        return xs.flip(0)
    steps, ends = torch.arange(len(xs)).unsqueeze(1), lengths.unsqueeze(0)
    places = torch.where(steps < ends, ends - 1 - steps, steps).to(xs.device)
    return xs.take_along_dim(places.unsqueeze(-1), 0)


def by_lengths(layer: Layer, w: Weights, xs: Tensor, state: LayerState, lengths: Tensor) -> tuple[Tensor, LayerState]:
    """A layer over sequences of several lengths: between two ends the sequences that continue are run together."""
    order = lengths.argsort(descending=True)
    back = order.argsort()
    xs, state = xs[:, order], tuple(part[order] for part in state)
    pieces, done = [], 0
    for end in lengths.unique().tolist():
        active = int((lengths >= end).sum())
        outputs, last = layer.run(w, xs[done:end, :active], tuple(part[:active] for part in state))
        pieces.append(nn.functional.pad(outputs, (0, 0, 0, xs.shape[1] - active)))
        state = tuple(torch.cat([new, old[active:]]) for new, old in zip(last, state, strict=True))
        done = end
    return torch.cat(pieces)[:, back], tuple(part[back] for part in state)


def held_at_ends(layer: Layer, w: Weights, xs: Tensor, state: LayerState, lengths: Tensor) -> tuple[Tensor, LayerState]:
    """The same step by step, with the masks of the layer's products held over all steps."""
    step, outputs = layer.one_step(state[0]), []
    ends = lengths.to(xs.device)
    for t, x in enumerate(xs):
        continues = ends > t
        new = step(w, x, state)
        state = tuple(
            torch.where(continues.view(-1, *[1] * (part.dim() - 1)), part, old)
            for part, old in zip(new, state, strict=True)
        )
        outputs.append(state[0] * continues.unsqueeze(-1))
    return torch.stack(outputs), state


def detach(state: Any) -> Any:
    """A state without the graph of the steps before, for truncated back-propagation through time."""
    return state.detach() if isinstance(state, Tensor) else tuple(detach(part) for part in state)
