"""Modules that have the arrays of a network's part under plain names, and call it; how an output's arrays begin."""

import copy
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np
import torch
from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from elman import config
from elman.config import plugins
from elman.config.initialisation import Initialisation
from elman.config.parts import Activation, convert
from elman.network.encoders.encoder import Inputs
from elman.network.encoders.lookup import Lookup, LookupEncoder
from elman.network.output.choice import Choice, Conditional, Surroundings, unigram
from elman.network.output.contexts import build_contexts
from elman.network.output.layer import OutputLayer


class Unscripted(nn.Module):
    """A module that `torch.jit.script` refuses in words of its own, also as a part of another."""

    def __prepare_scriptable__(self) -> None:
        name = type(self).__name__
        raise TypeError(f"{name} of elman has no form in TorchScript; use torch.export or torch.jit.trace")


class Shared(Unscripted):
    """A module with the parameters, buffers and parts of `arrays`, which is `whole` or a part of it.

    Neither is a part of this module, so that a name such as `weight` has nothing before it. What is done to the arrays
    of this module (a move, another type, `functional_call`) is done to those that `whole` reads: they are the same.
    Parts that are replaced are read too. ValueError where a hook of `forward` computes an array.
    """

    def __init__(self, whole: nn.Module, arrays: nn.Module) -> None:
        super().__init__()
        self._whole, self._arrays = (whole,), (arrays,)
        self._parameters, self._buffers = arrays._parameters, arrays._buffers
        self._non_persistent_buffers_set, self._names = arrays._non_persistent_buffers_set, (*arrays._parameters,)
        for name, part in arrays.named_children():
            self.add_module(name, part)

    def __setattr__(self, name: str, value: Any) -> None:
        """What is called has the mode of the module, however it is set."""
        super().__setattr__(name, value)
        if name == "training":
            self._whole[0].train(value)

    def called(self) -> Any:
        """What is called: `whole`, or a copy that reads what torch parametrises and what is replaced in this module."""
        (whole,), (arrays,) = self._whole, self._arrays
        parametrised: Any = self.parametrizations if is_parametrized(self) else ()
        if gone := [name for name in self._names if name not in self._parameters and name not in parametrised]:
            raise ValueError(
                f"{gone[0]} is computed by a hook of forward, which other methods do not call;"
                " parametrise it by torch.nn.utils.parametrize, or make it permanent"
            )
        parts = {name: self._modules.get(name, part) for name, part in arrays._modules.items()}
        others = {name: part for name, part in parts.items() if part is not arrays._modules[name]}
        if not (parametrised or others):
            return whole
        read = copy.copy(arrays)
        read._parameters = arrays._parameters | {name: getattr(self, name) for name in parametrised}
        read._modules = arrays._modules | others
        if whole is arrays:
            return read
        found = copy.copy(whole)
        found._modules = {name: read if part is arrays else part for name, part in whole._modules.items()}
        return found


Device: TypeAlias = torch.device | str | None


T = TypeVar("T")


def record_of(keys: dict[str, Any], kind: type[T], name: str, more: str = "") -> T:
    """The record with these keys; where one is wrong ValueError with a name, the key, and what else may be given."""
    try:
        return convert(_plain(keys), kind)
    except msgspec.ValidationError as error:
        what = str(error).replace("Object contains unknown field", "there is no argument")
        what = what.replace("Object missing required field", "there has to be an argument")
        raise ValueError(f"{name}: {what}{more}") from None


def _plain(value: Any) -> Any:
    """A value with numbers of Python in the place of NumPy's, which no record takes."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def widths_of(input_size: Any, hidden_size: Any, num_layers: Any) -> tuple[int, ...]:
    """The widths of all layers; TypeError or ValueError where sizes are no whole numbers, or do not fit."""
    several = isinstance(hidden_size, Iterable)
    widths = tuple(hidden_size) if several else (hidden_size,)
    given = f"input_size is {input_size!r}, hidden_size {hidden_size!r} and num_layers {num_layers!r}"
    if not all(isinstance(size, Integral) for size in (input_size, num_layers, *widths)):
        raise TypeError(f"{given}; they are whole numbers, or hidden_size a list of them")
    if several and num_layers not in (1, len(widths)):
        raise ValueError(f"num_layers is {num_layers}, but hidden_size lists {len(widths)} widths")
    widths = widths if several else widths * num_layers
    if not widths or min(input_size, *widths) < 1:
        raise ValueError(f"{given}; each is 1 or more")
    return tuple(map(int, widths))


class Birth(NamedTuple):
    """How the arrays of an output begin: the arguments that all of them have."""

    weight: nn.Parameter | None = None
    initialisation: Initialisation | None = None
    device: Device = None
    dtype: torch.dtype | None = None
    counts: Sequence[int] | None = None

    def layer(
        self,
        sizes: Sequence[int],
        num_outputs: int,
        choice: dict[str, Any],
        activation: Activation = "softmax",
        contexts: dict[str, Any] | None = None,
    ) -> OutputLayer:
        """The layer of the records `choice` and `contexts`, over levels of widths `sizes`, initialised."""
        tied = {} if self.weight is None else {"tied": True}
        if self.counts is not None and len(self.counts) != num_outputs:
            raise ValueError(f"counts has {len(self.counts)} numbers, and there are {num_outputs} symbols")
        parts = {"activation": activation, "choice": choice | tied, "contexts": contexts or {"kind": "single"}}
        record = record_of(parts, config.Output, choice["kind"])
        with self._device:
            read = build_contexts(record, sizes)
            encoder = self._tied(num_outputs, choice.get("size", read.size))
            surroundings = Surroundings(read.size, num_outputs, activation, encoder, self.counts)
            layer = OutputLayer(read, plugins.built(record.choice, Conditional, surroundings))
        return self._begun(layer, num_outputs)

    def around(self, size: int, build: Callable[[], Conditional], num_outputs: int) -> OutputLayer:
        """The layer of a choice that no recipe has, over one context of a width, initialised."""
        with self._device:
            layer = OutputLayer(build_contexts(config.Output(), [size]), build())
        return self._begun(layer, num_outputs)

    @property
    def _device(self) -> torch.device:
        if self.weight is not None:
            return self.weight.device
        return torch.get_default_device() if self.device is None else torch.device(self.device)

    def _begun(self, layer: OutputLayer, num_outputs: int) -> OutputLayer:
        dtype = self.dtype if self.weight is None else self.weight.dtype
        for parameter in layer.parameters():
            if parameter is not self.weight:
                parameter.data = parameter.data.to(dtype)
        rules = self.initialisation or Initialisation()
        layer.initialise(rules, [] if self.weight is None else [self.weight])
        if rules.output_bias == "unigram":
            if not isinstance(layer.choice, Choice):
                raise ValueError('output_bias = "unigram" is for symbols; set it to "zeros"')
            layer.choice.begin_at(unigram(num_outputs, self.counts))
        return layer

    def _tied(self, num_outputs: int, width: int | None) -> LookupEncoder | None:
        """An encoder of word vectors that has the shared matrix, of this width; None: of any."""
        if self.weight is None:
            return None
        width = self.weight.shape[-1] if width is None else width
        if self.weight.shape != (num_outputs, width):
            raise ValueError(
                f"weight has shape {list(self.weight.shape)}, and {num_outputs} symbols after contexts of width {width}"
                f" need {[num_outputs, width]}; choose the width of the vectors, or leave weight out"
            )
        with torch.device("meta"):
            encoder = Lookup(size=width).build(Inputs(num_outputs))
        encoder.weight = self.weight
        return encoder
