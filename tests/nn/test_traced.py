"""Layers within torch.compile, torch.export and torch.func, where operators or plain forms are taken."""

import shutil

import pytest
import torch

from elman import nn as enn
from elman.network.fast import gru, lstm, policy
from elman.nn import products_in

LAYERS = {
    "lstm": lambda: enn.LSTM(3, 5, num_layers=2),
    "gru": lambda: enn.GRU(3, [4, 5], bidirectional=True),
    "slstm": lambda: enn.SLSTM(3, 4, heads=2),
    "qrnn": lambda: enn.QRNN(3, 4),
}
COMPILER = shutil.which("g++") or shutil.which("clang++")


def problem(name):
    torch.manual_seed(0)
    layer, xs = LAYERS[name](), torch.randn(3, 2, 3, requires_grad=True)
    return layer, xs


def gradients(layer, xs, run=None):
    outputs, _ = (layer if run is None else run)(xs)
    return [outputs, *torch.autograd.grad(outputs.square().sum(), [*layer.parameters(), xs])]


def assert_same(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.fixture(autouse=True)
def nothing_compiled():
    torch._dynamo.reset()


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_compiled_as_one_graph(name):
    layer, xs = problem(name)
    assert_same(gradients(layer, xs, torch.compile(layer, fullgraph=True, backend="aot_eager")), gradients(layer, xs))


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("kind", [enn.LSTM, enn.GRU])
def test_a_layer_is_compiled_by_the_usual_compiler(kind):
    layer, xs = kind(3, 5), torch.randn(6, 2, 3, requires_grad=True)
    assert_same(gradients(layer, xs, torch.compile(layer, fullgraph=True)), gradients(layer, xs))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", [enn.LSTM, enn.GRU])
def test_a_compiled_layer_has_the_precision_of_where_it_is_called(kind, bias, monkeypatch):
    """Its backward pass too; inputs and biases need no gradients here, which are then not formed."""
    monkeypatch.setattr(policy, "LEAST_MULTIPLY_ADDS", 0)
    monkeypatch.setattr(policy, "LEAST_ROWS", 1)
    monkeypatch.setattr(policy, "BF16_LSTM", 0)
    monkeypatch.setitem(policy.LIBRARY_LSTM, "float32", 0)
    monkeypatch.setitem(policy.LIBRARY_LSTM, "bf16", 0)
    layer, xs = kind(16, 16, bias=bias), torch.randn(6, 3, 16)
    weights = [part.requires_grad_(part.dim() == 2) for part in layer.parameters()][:2]
    compiled, found = torch.compile(layer, fullgraph=True, backend="aot_eager"), {}
    for precision in ("float32", "bf16"):
        for run in (layer, compiled):
            with products_in(precision):
                outputs = run(xs)[0]
            found[precision, run is layer] = [outputs, *torch.autograd.grad(outputs.square().sum(), weights)]
        for one, other in zip(found[precision, True], found[precision, False], strict=True):
            assert torch.equal(one, other)
    assert not torch.equal(found["bf16", True][1], found["float32", True][1])


@pytest.mark.parametrize(("operator", "gates", "states", "biases"), [(lstm.operator, 4, 2, 1), (gru.operator, 3, 1, 2)])
def test_operators_keep_the_rules_of_torch(operator, gates, states, biases):
    shapes = [(4, 2, 3), *[(2, 5)] * states, (gates * 5, 3), (gates * 5, 5), *[(gates * 5,)] * biases]
    torch.library.opcheck(operator, (*(torch.randn(shape, requires_grad=True) for shape in shapes), False))


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
