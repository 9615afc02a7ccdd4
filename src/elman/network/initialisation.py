"""How weights begin: each rule fills a tensor; for stacked gates it is applied gate by gate."""

import math
from typing import assert_never

import torch
from torch import Tensor, nn

from elman import config
from elman.network.cells.cell import Cell
from elman.network.cores.attentive import AttentiveCore
from elman.network.cores.jordan import Jordan
from elman.network.cores.reservoir import Reservoir
from elman.network.cores.stack import ConnectedStack, Layer, Stack, candidate_gate
from elman.network.cores.window import FeedForwardWindow
from elman.network.encoders.characters import Characters, Highway
from elman.network.encoders.encoder import Frames
from elman.network.encoders.lookup import Lookup
from elman.network.model import LanguageModel
from elman.network.output.contexts import Mixture
from elman.network.seq2seq import SequenceToSequence


@torch.no_grad()
def fill(tensor: Tensor, rule: config.Init, fan: int) -> None:
    """Fill `tensor`; `fan` is the n of the rules that scale with the width (H for recurrent layers)."""
    match rule:
        case config.Uniform(bound=bound):
            bound = 1 / math.sqrt(fan) if bound is None else bound
            tensor.uniform_(-bound, bound)
        case config.Normal(std=std):
            tensor.normal_(0.0, 1 / math.sqrt(fan) if std is None else std)
        case config.Glorot():
            nn.init.xavier_uniform_(tensor) if tensor.ndim > 1 else tensor.zero_()
        case config.He():
            nn.init.kaiming_normal_(tensor) if tensor.ndim > 1 else tensor.zero_()
        case config.Orthogonal(gain=gain):
            nn.init.orthogonal_(tensor, gain)
        case config.Identity(gain=gain):
            nn.init.eye_(tensor).mul_(gain)
        case config.Zeros():
            tensor.zero_()
        case _:
            assert_never(rule)


def initialise(model: LanguageModel, rules: config.Initialisation) -> None:
    """Fill every parameter of `model` in a fixed order, from torch's global random state."""
    encoder, core, output = model.encoder, model.core, model.output
    match encoder:
        case Lookup() | Frames():
            fill(encoder.weight, rules.embedding, encoder.size)
        case Characters():
            _initialise_characters(encoder, rules)
    match core:
        case Stack() | ConnectedStack():
            for layer in core.layers:
                assert isinstance(layer, Layer)
                initialise_layer(layer, rules)
        case Jordan():
            size = len(core.bias)
            fill(core.weight_ih, rules.input, size)
            fill(core.weight_ch, rules.input, size)
            fill(core.bias, rules.bias, size)
        case Reservoir():
            core.draw()
        case FeedForwardWindow():
            fill(core.hidden.weight, rules.input, core.hidden.weight.shape[1])
            fill(core.hidden.bias, config.Zeros(), 1)
        case AttentiveCore():
            for layer in core.stack.layers:
                assert isinstance(layer, Layer)
                initialise_layer(layer, rules)
            for parameter in (*core.attention.parameters(), core.combine.weight):
                fill(parameter, rules.input, parameter.shape[-1])
    if isinstance(output.contexts, Mixture):
        for linear in (*output.contexts.projections.values(), output.contexts.prior):
            for parameter in linear.parameters():
                fill(parameter, rules.contexts, linear.in_features)  # type: ignore[arg-type]
    for parameter in output.choice.parameters():
        if parameter.ndim > 1 and not (
            isinstance(encoder, Lookup) and parameter is encoder.weight
        ):  # vectors begin as the choice has set them
            fill(parameter, rules.output, parameter.shape[1])
    if isinstance(model, SequenceToSequence):
        _initialise_reader(model, rules)


def _initialise_reader(model: SequenceToSequence, rules: config.Initialisation) -> None:
    reader = model.reader
    assert isinstance(reader.encoder, Lookup)
    if reader.encoder is not model.encoder:
        fill(reader.encoder.weight, rules.embedding, reader.encoder.size)
    for layer in reader.modules():
        if isinstance(layer, Layer):
            initialise_layer(layer, rules)
    if model.bridge is not None:
        for parameter in model.bridge.parameters():
            fill(parameter, rules.input if parameter.ndim > 1 else config.Zeros(), parameter.shape[-1])


def _initialise_characters(encoder: Characters, rules: config.Initialisation) -> None:
    """Filters and highways as inputs of a layer; biases stay as they are made, the gate's at -2."""
    fill(encoder.weight, rules.embedding, encoder.weight.shape[1])
    for weight in encoder.filters:
        fill(weight, rules.input, weight.shape[1])
    for highway in encoder.highways:
        assert isinstance(highway, Highway)
        for half in highway.weight.chunk(2):
            fill(half, rules.input, encoder.size)


def initialise_layer(layer: Layer, rules: config.Initialisation) -> None:
    """Fill the parameters of one layer."""
    size = layer.hidden_size
    for gate in torch.split(layer.weight_ih, size):
        fill(gate, rules.input, size)
    for index, gate in enumerate(torch.split(layer.weight_hh, size)):
        own = rules.candidate if index == candidate_gate(layer) else None
        fill(gate, own or rules.hidden, size)
    for vector in (layer.bias_ih, layer.bias_hh, layer.peephole):
        if vector is not None:
            fill(vector, rules.bias, size)
    for matrix in layer.extra or ():
        fill(matrix, rules.input, matrix.shape[1])
    if rules.forget_bias is not None:
        _open_for_the_past(layer, rules.forget_bias)


@torch.no_grad()
def _open_for_the_past(layer: Layer, bias: float) -> None:
    """Let the biases of each gate that keeps the old state add up to `bias`, or minus it where shut means keep."""
    for block, sign in layer.cell.keeps:
        rows = slice(block * layer.hidden_size, (block + 1) * layer.hidden_size)
        left = sign * bias
        for vector in (layer.bias_ih, layer.bias_hh):
            if vector is not None and rows.start < len(vector):
                vector[rows], left = left, 0.0


def has_forget_gate(cell: Cell) -> bool:
    """Whether a gate decides what stays of the old state, and may be told so by `forget_bias`; a GRU's is not."""
    return bool(cell.keeps)
