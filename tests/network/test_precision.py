"""Products in bf16 against an explicit rounding of their factors, and everything that must stay float32."""

from functools import partial

import pytest
import torch

from elman import config
from elman.data.batches import Batch
from elman.learning.bptt import bptt
from elman.network.build import build_model
from elman.network.cells.cell import Weights
from elman.network.cores.stack import layers_of
from elman.network.fast import gru, lstm, matmul, mixture, mixture_products, policy, precision, preference
from elman.objective.loss import Objective
from support import networks

UNIT = 2.0**-8
"""Half the distance from 1 to the next number of bf16: the largest relative error of rounding."""


@pytest.fixture(autouse=True)
def small_products_too(monkeypatch):
    monkeypatch.setattr(policy, "LEAST_MULTIPLY_ADDS", 0)
    monkeypatch.setattr(policy, "LEAST_ROWS", 1)
    monkeypatch.setattr(policy, "LEAST_ONEDNN", 0)


def rounded(x: torch.Tensor) -> torch.Tensor:
    """To bf16, by adding and taking away a large number: 8 bits of significand remain."""
    scale = torch.ldexp(torch.ones_like(x), x.abs().log2().floor().int() - 7)
    return (x / scale).round() * scale


def factors(*shape: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    rows, inputs, outputs = shape
    x, w = torch.randn(rows, inputs, generator=generator), torch.randn(outputs, inputs, generator=generator)
    return x, w, torch.randn(rows, outputs, generator=generator)


@pytest.mark.parametrize("uses", [1, 100])
@pytest.mark.parametrize("transposed", [False, True])
def test_both_factors_and_then_the_product_are_rounded(uses, transposed):
    x, w, other = factors(5, 16, 12)
    if transposed:
        w = w.t().contiguous().t()
    exact = rounded(x.double()) @ rounded(w.double()).t()
    assert not torch.allclose(exact, x.double() @ w.double().t(), rtol=1e-4)
    with precision.products_in("bf16"):
        packed = matmul.pack(w, 5, uses)
        for found, without in (
            (matmul.multiply(x, packed), 0),
            (matmul.multiply(x, packed, other[0, :12]), other[0, :12]),
            (matmul.multiply_add(x, packed, other), other),
        ):
            assert found.dtype == torch.float32
            error = (found.double() - without - exact).abs()
            assert (error <= UNIT * exact.abs() + 1e-5).all()
        torch.testing.assert_close(other + matmul.multiply(x, packed), matmul.multiply_add(x, packed, other))
    assert torch.equal(matmul.multiply(x, w), matmul.multiply(x, w.clone()))


def test_float32_is_the_default_and_comes_back():
    assert precision.chosen() == "float32"
    with precision.products_in("bf16"):
        assert precision.chosen() == "bf16"
        with precision.products_in("float32"):
            assert precision.chosen() == "float32"
        assert precision.chosen() == "bf16"
    assert precision.chosen() == "float32"


def test_small_products_and_other_types_are_not_rounded(monkeypatch):
    x, w, _ = factors(5, 16, 12)
    with precision.products_in("bf16"):
        doubles = x.double(), w.double()
        assert matmul.pack(doubles[1], 5, 100).dtype == torch.float64
        torch.testing.assert_close(matmul.multiply(*doubles), doubles[0] @ doubles[1].t(), rtol=1e-14, atol=1e-14)
        for least, dtype in ((5 * 16 * 12, torch.bfloat16), (5 * 16 * 12 + 1, torch.float32)):
            monkeypatch.setattr(policy, "LEAST_MULTIPLY_ADDS", least)
            assert matmul.rounded(w, 5).dtype == dtype
        monkeypatch.setattr(policy, "LEAST_MULTIPLY_ADDS", 0)
        for least, dtype in ((15, torch.bfloat16), (16, torch.float32)):
            monkeypatch.setattr(policy, "LEAST_ROWS", least)
            assert matmul.rounded(w, 5, 3).dtype == dtype


@pytest.mark.parametrize("steps", [1, 5, 20])
def test_windows_of_any_length_are_differentiated(steps, monkeypatch):
    """Also where a factor of one product is rounded and that of the next is not, as in short windows."""
    monkeypatch.setattr(policy, "LEAST_MULTIPLY_ADDS", 1 << 10)
    monkeypatch.setattr(policy, "LEAST_ROWS", 16)
    monkeypatch.setitem(policy.LIBRARY_LSTM, "bf16", 0)
    monkeypatch.setattr(policy, "BF16_LSTM", 0)
    torch.manual_seed(6)
    record = config.Model(encoder=config.Lookup(size=24), core=config.Stack(sizes=(32, 24)))
    model, symbols = build_model(record, 40), torch.randint(40, (steps + 1, 1))
    found = {}
    for kind in ("float32", "bf16"):
        model.zero_grad()
        with precision.products_in(kind):
            bptt(model, Objective(), Batch(symbols[:-1], symbols[1:]), model.begin(1))
        found[kind] = torch.cat([p.grad.flatten() for p in model.parameters()])
    assert relative(found["bf16"], found["float32"]) < 3e-2


def test_a_backward_pass_has_the_precision_of_its_forward_pass():
    x, w, upstream = factors(5, 16, 12)
    w.requires_grad_()
    with precision.products_in("bf16"):
        inside = matmul.linear(x, w)
        expected = matmul.multiply(upstream.t(), x.t())
    (found,) = torch.autograd.grad(inside, w, upstream)
    assert torch.equal(found, expected)
    outside = matmul.linear(x, w)
    with precision.products_in("bf16"):
        (found,) = torch.autograd.grad(outside, w, upstream)
    assert torch.equal(found, matmul.multiply(upstream.t(), x.t()))


def relative(found: torch.Tensor, exact: torch.Tensor) -> float:
    return ((found.double() - exact.double()).norm() / exact.double().norm()).item()


def lstm_case():
    weights = Weights(*(torch.randn(size) * 0.3 for size in ((64, 12), (64, 16), (64,), (64,))))
    return lstm.scan, weights, torch.randn(7, 5, 12), (torch.randn(5, 16), torch.randn(5, 16))


def gru_case(run):
    weights = Weights(*(torch.randn(size) * 0.3 for size in ((48, 12), (48, 16), (48,), (48,))))
    return run, weights, torch.randn(7, 5, 12), (torch.randn(5, 16),)


@pytest.mark.parametrize(
    "case", [lstm_case, lambda: gru_case(gru.scan), lambda: gru_case(partial(gru.scan, reset="before"))]
)
def test_recurrences_are_float32_but_for_their_products(case, monkeypatch):
    monkeypatch.setitem(policy.LIBRARY_LSTM, "bf16", 0)
    monkeypatch.setattr(policy, "BF16_LSTM", 0)
    torch.manual_seed(3)
    run, weights, xs, state = case()
    leaves = [*(leaf.requires_grad_() for leaf in weights.tensors().values()), xs.requires_grad_()]
    gradients = {}
    for kind in ("float32", "bf16"):
        with precision.products_in(kind):
            outputs, after = run(weights, xs, state)
            gradients[kind] = torch.autograd.grad(outputs.square().sum(), leaves)
        assert all(leaf.dtype == torch.float32 for leaf in (outputs, *after))
        gradients[kind] = (*gradients[kind], outputs.detach(), *(leaf.detach() for leaf in after))
    for exact, found in zip(gradients["float32"], gradients["bf16"], strict=True):
        assert 1e-5 < relative(found, exact) < 3e-2
    sums = [found for leaf, found in zip(leaves, gradients["bf16"], strict=False) if leaf.ndim == 1]
    assert not any(torch.equal(found, found.bfloat16().float()) for found in sums)


READERS = (
    "lstm", "gru-before", "gru-after", "highway-3", "qrnn-1", "qrnn-2", "sru", "slstm", "mlstm", "mlstm-convolution",
    "min-gru", "min-lstm",
)  # fmt: skip
"""Cells with a sequence function whose only products, without recurrent weights, are those of their inputs."""


@pytest.mark.parametrize("cell", [networks.CELL_RECORDS[name] for name in READERS], ids=READERS)
def test_only_the_first_layer_multiplies_its_inputs_exactly(cell, monkeypatch):
    monkeypatch.setitem(policy.LIBRARY_LSTM, "bf16", 0)
    monkeypatch.setattr(policy, "BF16_LSTM", 0)
    torch.manual_seed(5)
    model = build_model(config.Model(encoder=config.Lookup(size=16), core=config.Stack(sizes=(16, 16), cell=cell)), 9)
    layers, xs = layers_of(model.core), torch.randn(4, 3, 16)
    for number, layer in enumerate(layers):
        if layer.weight_hh is not None:
            layer.weight_hh.data.zero_()
        exact, _ = layer(xs, layer.begin(3))
        with precision.products_in("bf16"):
            with torch.no_grad():
                evaluated, _ = layer(xs, layer.begin(3))
            trained, _ = layer(xs, layer.begin(3))
        for found in (evaluated, trained):
            assert torch.allclose(found, exact, atol=1e-6) == (number == 0)


def likelihoods(activation: str, num_positions: int = 9) -> dict[str, list[torch.Tensor]]:
    """By precision: the loss of a mixture, the gradients, and the likelihood of every position, twice."""
    torch.manual_seed(4)
    context, prior = torch.randn(num_positions, 3, 8), torch.randn(num_positions, 3).log_softmax(-1)
    weight, bias, target = torch.randn(40, 8), torch.randn(40), torch.randint(40, (num_positions,))
    leaves = [leaf.requires_grad_() for leaf in (context, prior, weight, bias)]
    found = {}
    for kind in ("float32", "bf16"):
        with precision.products_in(kind):
            total, nll = mixture.nll(*leaves, target, torch.ones(num_positions), activation)
            with torch.no_grad():
                again = mixture.log_prob(*leaves, target, activation)
        found[kind] = [total.detach(), *torch.autograd.grad(total, leaves), nll, -again]
        assert all(tensor.dtype == torch.float32 for tensor in found[kind])
    return found


@pytest.mark.parametrize("activation", ["softmax", "sigsoftmax"])
def test_the_likelihood_sums_in_float32(activation):
    found = likelihoods(activation)
    for exact, reduced in zip(found["float32"], found["bf16"], strict=True):
        assert 1e-7 < relative(reduced, exact) < 2e-2
    *_, nll, again = found["bf16"]
    # A softmax is trained by rounded probabilities, and evaluated by those of rounded scores.
    torch.testing.assert_close(again, nll, rtol=UNIT if activation == "softmax" else 1.3e-6, atol=1e-5)


@pytest.mark.parametrize("activation", ["softmax", "sigsoftmax"])
@pytest.mark.parametrize("gathered", [1, 2, 5, 100])
def test_gathered_chunks_give_the_gradients_of_all_rows(activation, gathered, monkeypatch):
    chunk = 4 * 3 * 40 * 2  # bytes of two positions
    monkeypatch.setattr(mixture_products, "CHUNK_BYTES", {"cpu": chunk})
    monkeypatch.setattr(mixture_products, "CHUNK_ROWS", 1)
    monkeypatch.setattr(mixture_products, "BLOCK_BYTES", gathered * chunk // 2)
    found = likelihoods(activation, num_positions=11)
    for exact, reduced in zip(found["float32"], found["bf16"], strict=True):
        assert 1e-7 < relative(reduced, exact) < 2e-2


@pytest.mark.parametrize("activation", ["softmax", "sigsoftmax"])
def test_targets_that_underflow_leave_the_rows_of_their_chunk_as_they_are(activation, monkeypatch):
    monkeypatch.setattr(mixture_products, "CHUNK_BYTES", {"cpu": 4 * 40 * 3})  # three positions
    monkeypatch.setattr(mixture_products, "CHUNK_ROWS", 1)
    context = torch.eye(8).unsqueeze(1).requires_grad_()
    weight = torch.zeros(40, 8).index_fill_(0, torch.tensor([7]), -80.0).requires_grad_()  # exact in bf16
    target, each, found = torch.tensor([0, 7, 1, 2, 3, 7, 4, 5]), torch.ones(8), {}
    for kind in ("float32", "bf16"):
        with precision.products_in(kind):
            total, nll = mixture.nll(context, None, weight, None, target, each, activation)
            again = mixture.log_prob(context, None, weight, None, target, activation)
        found[kind] = [nll, -again, *torch.autograd.grad(total, [context, weight])]
    assert found["float32"][0].max() > 80
    for exact, reduced in zip(found["float32"], found["bf16"], strict=True):
        assert relative(reduced, exact) < 2 * UNIT


@pytest.mark.slow
def test_every_measured_rate_is_positive():
    found = preference.measure(torch.device("cpu"))
    assert {peak.precision for peak in found} == {"float32", "bf16"}
    assert all(0 < peak.gflops < 1e6 for peak in found)


def test_a_precision_that_there_is_not():
    with pytest.raises(ValueError, match=r"precision is 'fp16'; choose"), precision.products_in("fp16"):
        pass
