"""Networks of several layers, output included, against NumPy transcriptions of their papers."""

import numpy as np
import pytest
import torch

from elman import config
from elman.data.batches import Source
from elman.network.build import build_model
from elman.network.cores.source import SourceReader
from elman.network.encoders.encoder import Inputs
from elman.network.encoders.values import ValuesEncoder
from reference import networks as reference
from reference.cells import Gate
from support import networks as small

WORDS, STEPS, ROWS = 6, 7, 2


def array(tensor):
    return tensor.detach().numpy()


def split(layer):
    """The gates of a layer, each (W, U, b, d)."""
    parts = (layer.weight_ih, layer.weight_hh, layer.bias_ih, layer.bias_hh)
    return [
        Gate(*blocks) for blocks in zip(*(np.split(array(part), len(layer.cell.gates)) for part in parts), strict=True)
    ]


def model_of(core):
    recipe = config.Model(encoder=config.Lookup(size=3), core=core, output=config.Output(choice=config.Flat()))
    return small.randomise(build_model(recipe, WORDS)).eval()


def said(model):
    """The vectors that were read, [T, B, E], and the distributions [T, B, V] that were said."""
    words = torch.randint(WORDS, (STEPS, ROWS))
    log_probs, _ = model.log_probs(words, model.begin(ROWS))
    return array(model.encoder(words)), array(log_probs.exp())


def test_the_deep_lstm_is_graves():
    """Every layer reads the input by a matrix of its own, and every layer speaks."""
    sizes = (4, 5, 2)
    model = model_of(config.Stack(sizes=sizes, cell=config.LSTM(peepholes=True), connections="graves"))
    layers = []
    for number, layer in enumerate(model.core.layers):
        gates = [
            reference.DeepGate(gate.W[:, :3], gate.W[:, 3:] if number else None, gate.U, gate.b + gate.d)
            for gate in split(layer)
        ]
        layers.append((gates, array(layer.peephole)))
    choice = model.output.choice
    outputs = np.split(array(choice.weight), np.cumsum(sizes)[:-1], axis=1)
    xs, found = said(model)
    np.testing.assert_allclose(found, reference.graves(layers, outputs, array(choice.bias), xs), rtol=1e-10)


@pytest.mark.parametrize("input_gate", ["free", "capped"])
def test_skip_connections_are_melis(input_gate):
    cell = config.LSTM(input_gate=input_gate)
    model = model_of(config.Stack(sizes=(4, 4, 4), cell=cell, connections="melis"))
    layers, choice = [split(layer) for layer in model.core.layers], model.output.choice
    xs, found = said(model)
    wanted = reference.melis(layers, array(choice.weight), array(choice.bias), xs, capped=input_gate == "capped")
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_both_directions_are_schusters_and_paliwals():
    record = config.Reader(stack=config.Stack(sizes=(4,), cell=config.Elman()))
    reader = small.randomise(SourceReader(record, ValuesEncoder(config.Values(), Inputs(3)), locked=True)).eval()
    xs = torch.randn(STEPS, ROWS, 3, dtype=torch.float64)
    memory = reader(Source(xs, torch.ones(STEPS, ROWS, dtype=torch.bool))).memory
    (forward,), (backward,) = (split(layer) for layer in reader.layers[0])
    np.testing.assert_allclose(array(memory), reference.bidirectional(forward, backward, xs.numpy()), rtol=1e-10)
