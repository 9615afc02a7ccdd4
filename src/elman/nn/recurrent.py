"""Recurrent layers as torch modules: the arguments, results and weights of `torch.nn.LSTM`, for every cell.

T steps, B sequences, I inputs, H units of a layer, L layers, D directions. A layer's weights have torch's names,
`weight_ih_l0`, `weight_hh_l1_reverse` and so on, and the further arrays of a cell theirs, `A_log_l0`.
"""

import inspect
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Literal, TypeAlias, overload

import msgspec
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from elman.config.initialisation import Initialisation
from elman.config.parts import tag_of
from elman.network.cells.cell import Cell, LayerState, Weights, unroll
from elman.network.cores.core import Trace
from elman.network.cores.layer import Layer
from elman.network.cores.stack import Stack, build_layer
from elman.network.dropout import Dropout
from elman.network.state import as_type
from elman.nn.lengths import by_lengths, held_at_ends, turned
from elman.nn.shared import Unscripted, record_of, widths_of

State: TypeAlias = Tensor | tuple[Any, ...]
"""What `forward` returns in addition to its outputs.

With one `hidden_size` it is in torch's form, a tensor [L D, B, H] for each part of a cell's state, alone where there is
one part. With a list of sizes, or parts that differ between layers (the input before, of a QRNN), it is one tuple of
tensors [B, ...] per layer and direction.
"""


class Recurrent(Unscripted):
    """Layers of one cell; a subclass names the cell, whose keys are further keyword arguments.

    Args:
        input_size: I
        hidden_size: H, or a list of the widths of all layers, the lowest first
        num_layers: L; with a list of widths its length
        bias: two bias vectors per gate, as in torch, or none
        batch_first: sequences are [B, T, I] and outputs [B, T, D H]
        dropout: of the outputs of every layer but the last, element by element; it may be set later
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

    Raises ValueError where an argument is unknown or out of its range, TypeError where a size is no whole number,
    UserError where the cell has no such dropout.
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
        widths = widths_of(input_size, hidden_size, num_layers)
        if not isinstance(bias, bool):
            raise ValueError(f"bias is {bias!r}; it is True or False (a nonlinearity is given by keyword)")
        if dropout and between_dropout:
            raise ValueError("dropout and between_dropout are two kinds of masks between layers; give one of them")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, len(widths)
        self.bias, self.batch_first, self.bidirectional = bias, batch_first, bidirectional
        self.cell = self._cell(keys)
        self._rules = initialisation or Initialisation()
        rates = {"weight_drop": weight_drop, "input_dropout": input_dropout, "recurrent_dropout": recurrent_dropout}
        rates |= {"between_dropout": between_dropout, "output_dropout": output_dropout}
        sizes = {"kind": "stack", "sizes": list(widths), "biases": 2 if bias else 0, "gate_masks": gate_masks}
        record = msgspec.structs.replace(record_of(sizes | rates, Stack, type(self).__name__), cell=self.cell)
        self._between, self._output = Dropout(between_dropout), Dropout(output_dropout)
        if dropout:
            self.dropout = dropout
        if self._between.rate and len(widths) == 1:
            warnings.warn("dropout is between layers, and there is one: nothing is dropped", stacklevel=2)
        self._layers: list[Layer] = []
        self._names: list[dict[str, str]] = []
        below, directions = input_size, 1 + bidirectional
        with torch.device(torch.get_default_device() if device is None else device):
            for width in widths:
                for _ in range(directions):
                    self._add(build_layer(record, below, width, locked=True), dtype)
                below = directions * width
        self._stacked = isinstance(hidden_size, Integral) and len({layer.shapes for layer in self._layers}) == 1
        self.reset_parameters()

    def _cell(self, keys: dict[str, Any]) -> Cell:
        allowed = ", ".join(self.kind.__struct_fields__) or "none"
        more = f"; further arguments are {allowed}"
        return record_of({"kind": tag_of(self.kind), **keys}, self.kind, type(self).__name__, more)

    def _add(self, layer: Layer, dtype: torch.dtype | None) -> None:
        """Take the weights of a layer under torch's names; it keeps none."""
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

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw all weights as a new module does; 16-bit weights are rounded."""
        for layer, names in zip(self._layers, self._names, strict=True):
            found = ((name, self._parameters.get(key)) for name, key in names.items())
            given = {name: own for name, own in found if own is not None}
            for name, own in given.items():
                layer._parameters[name] = nn.Parameter(own.to(torch.promote_types(own.dtype, torch.float32), copy=True))
            layer.initialise(self._rules)
            for name, own in given.items():
                own.copy_(layer.get_parameter(name))
                layer._parameters[name] = None

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The arrays of each layer and direction, in torch's order, and then the further arrays of the cell."""
        return [[getattr(self, key) for key in names.values() if hasattr(self, key)] for names in self._names]

    @property
    def dropout(self) -> float:
        """The rate of dropout between layers, element by element."""
        return 0.0 if self._between.locked else self._between.rate

    @dropout.setter
    def dropout(self, rate: float) -> None:
        if isinstance(rate, bool) or not 0 <= rate < 1:
            raise ValueError(f"dropout is {rate!r}; it is 0 or more and below 1")
        self._between.rate, self._between.locked = rate, False

    def __setattr__(self, name: str, value: Any) -> None:
        """The layers, which are no modules of this one, have its mode however it is set."""
        super().__setattr__(name, value)
        if name == "training":
            for part in (*self._layers, self._between, self._output):
                part.training = value

    @property
    def fused(self) -> bool:
        """Whether the fast forms over time are used, which have first derivatives alone.

        `core.fused = False` chooses the loop over the plain step of the cell, for derivatives of any order.
        `torch.func`, derivatives in forward mode, `torch.compile` and `torch.export` read it in any case.
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
        usual = inspect.signature(Recurrent).parameters
        names = ("num_layers", "bias", "batch_first", "dropout", "bidirectional")
        given = [f"{name}={getattr(self, name)}" for name in names if getattr(self, name) != usual[name].default]
        return ", ".join([str(self.input_size), str(self.hidden_size), *given, f"cell={self.cell}"])

    @overload
    def forward(
        self, input: Tensor | PackedSequence, hx: State | None = None, levels: Literal[False] = False
    ) -> tuple[Any, State]: ...

    @overload
    def forward(
        self, input: Tensor | PackedSequence, hx: State | None = None, *, levels: Literal[True]
    ) -> tuple[Trace, State]: ...

    def forward(
        self, input: Tensor | PackedSequence, hx: State | None = None, levels: bool = False
    ) -> tuple[Any, State]:
        """Outputs and the last state, as torch's recurrent modules return them.

        Args:
            input: [T, B, I], [B, T, I] if `batch_first`, [T, I] for one sequence, or packed sequences
            hx: the state of a former call; None: sequences begin
            levels: in place of the outputs a `Trace` of the input and of every layer's outputs, each in the form of the
                input: `levels` after dropout, of which the last are the outputs, and `raw` before it; not of packed
                sequences, which raise ValueError

        Returns:
            Outputs of the last layer in the form of the input, and the state after the last step of each sequence, in
            the type of the weights, to which inputs of another type are converted.

        Raises ValueError where shapes do not fit.
        """
        if isinstance(input, PackedSequence):
            if levels:
                raise ValueError("packed sequences have no levels; call with a padded tensor")
            self._check(input.data)
            xs, lengths = pad_packed_sequence(input)
            trace, after = self._through(xs, self._entered(hx, xs.shape[1]), lengths)
            outputs = pack_padded_sequence(trace.top, lengths, enforce_sorted=input.sorted_indices is None)
            return outputs, self._left(after)
        batched = input.dim() > 2
        xs = input.transpose(0, 1) if batched and self.batch_first else input
        self._check(xs)
        if not batched:
            trace, after = self._through(xs.unsqueeze(1), self._entered(hx, None))
            trace = _each_of(trace, lambda level: level.squeeze(1))
        else:
            trace, after = self._through(xs, self._entered(hx, xs.shape[1]))
            if self.batch_first:
                trace = _each_of(trace, lambda level: level.transpose(0, 1))
        return trace if levels else trace.top, self._left(after, batched=batched)

    def _check(self, xs: Tensor) -> None:
        """Raise ValueError unless xs is [T, B, I] or [T, I] with T >= 1: some kernels would read beyond it."""
        if xs.dim() not in (2, 3) or xs.shape[-1] != self.input_size or not len(xs):
            raise ValueError(
                f"input has shape {list(xs.shape)}, time first; [T, B, {self.input_size}], or [T, {self.input_size}] of"
                " one sequence, is read, with one step or more"
            )

    def _entered(self, state: State | None, batch: int | None) -> list[LayerState] | None:
        """The state of each layer and direction, [B, ...] each; ValueError where a shape does not fit."""
        if state is None:
            return None
        rows = () if batch is None else (batch,)
        fitting = [tuple((*rows, *shape) for shape in layer.shapes) for layer in self._layers]
        parts = tuple(state) if isinstance(state, tuple | list) else (state,)
        if self._stacked:
            parts, fitting = (parts,), [tuple((len(fitting), *shape) for shape in fitting[0])]
        found = [tuple(tuple(part.shape) for part in one) for one in parts]
        if found != fitting:
            raise ValueError(f"the state has tensors of shapes {found}, and {fitting} fit the input")
        if self._stacked:
            parts = tuple(zip(*parts[0], strict=True))
        dtype = next(self.parameters()).dtype
        return [tuple(as_type(part.unsqueeze(0) if batch is None else part, dtype) for part in one) for one in parts]

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
        if not xs.shape[1]:  # kernels refuse no rows: zeros, the sum over no rows, stand for them
            one = layer.run(w, xs.sum(1, keepdim=True), tuple(part.sum(0, keepdim=True) for part in state))
            return one[0][:, :0], tuple(part[:0] for part in one[1])
        if lengths is None:
            return layer.run(w, xs, state)
        if layer.masked:
            return held_at_ends(layer, w, xs, state, lengths)
        return by_lengths(layer, w, xs, state, lengths)


def _each_of(trace: Trace, change: Callable[[Tensor], Tensor]) -> Trace:
    return Trace(tuple(map(change, trace.levels)), tuple(map(change, trace.raw)))


def detach(state: Any) -> Any:
    """A state without the graph of the steps before, for truncated back-propagation through time."""
    return state.detach() if isinstance(state, Tensor) else tuple(detach(part) for part in state)
