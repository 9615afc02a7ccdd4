"""Layers within torch.compile, torch.export and torch.func, where their plain forms are taken."""

import shutil

import pytest
import torch

from elman import nn as enn

LAYERS = {
    "lstm": lambda: enn.LSTM(3, 5, num_layers=2),
    "gru": lambda: enn.GRU(3, [4, 5], bidirectional=True),
    "slstm": lambda: enn.SLSTM(3, 4, heads=2),
    "qrnn": lambda: enn.QRNN(3, 4),
}
COMPILER = shutil.which("g++") or shutil.which("clang++")
BACKENDS = [
    "aot_eager",
    pytest.param(
        "inductor", marks=[pytest.mark.slow, pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")]
    ),
]


def problem(name):
    torch.manual_seed(0)
    layer, xs = LAYERS[name](), torch.randn(6, 2, 3, requires_grad=True)
    return layer, xs


def gradients(layer, xs, run=None):
    outputs, _ = (layer if run is None else run)(xs)
    return [outputs, *torch.autograd.grad(outputs.square().sum(), [*layer.parameters(), xs])]


def assert_same(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_compiled_as_one_graph(name, backend):
    layer, xs = problem(name)
    torch._dynamo.reset()
    assert_same(gradients(layer, xs, torch.compile(layer, fullgraph=True, backend=backend)), gradients(layer, xs))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("strict", [False, True])
def test_a_layer_is_exported(name, strict):
    layer, xs = problem(name)
    exported = torch.export.export(layer, (xs.detach(),), strict=strict).module()
    torch.testing.assert_close(exported(xs)[0], layer(xs)[0])


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_each_sequence_by_vmap(name):
    layer, xs = problem(name)
    arrays = dict(layer.named_parameters())

    def loss(arrays, one):
        return torch.func.functional_call(layer, arrays, (one.unsqueeze(1),))[0].square().sum()

    found = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 1))(arrays, xs.detach())
    wanted = gradients(layer, xs)[1:-1]
    assert_same([part.sum(0) for part in found.values()], wanted)
