"""Certificates by value: against the printed formulas, and on both sides of the bound."""

import math

import numpy as np
import pytest
import torch

from elman import config
from elman.analysis.stability import certify
from elman.network.build import build_model
from elman.network.cores.layer import Layer
from elman.network.cores.stack import StackCore, candidate_hidden
from elman.network.stability import certificate, incremental
from elman.network.stability.certificate import LETTERS, gates_of, origin
from reference import stability as reference
from support import networks
from support.pairwise import every_pair

SIZE, INPUTS = 4, 3
KINDS = ("gru-before", "gru-after", "lstm")
SCALES = (0.05, 0.3, 1.0)


def random_layer(name, scale, size=SIZE):
    return networks.randomise(Layer(networks.CELLS[name], INPUTS, size), scale)


def by_gate(layer):
    """U, W, b and b' of a layer as arrays by the letters of the gates."""
    stacked = (layer.weight_hh, layer.weight_ih, layer.bias_ih, layer.bias_hh)
    letters = LETTERS[layer.cell.name]
    return [dict(zip(letters, np.split(part.detach().numpy(), len(letters)), strict=True)) for part in stacked]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", KINDS)
def test_tier_1_is_the_printed_formula(name, scale):
    torch.manual_seed(0)
    for _ in range(5):
        layer, x = random_layer(name, scale), torch.randn(1, INPUTS, dtype=torch.float64)
        h, c = torch.randn(2, 1, SIZE, dtype=torch.float64).tanh().unbind(0)
        arrays = (*by_gate(layer), x[0].numpy(), h[0].numpy())
        if name == "lstm":
            state, expected = (h, 3 * c), reference.tier_1_lstm(*arrays, 3 * c[0].numpy())
        else:
            state, expected = (h,), reference.tier_1_gru(*arrays, name.removeprefix("gru-"))
        found = certificate.contraction(layer, gates_of(layer), x, state).item()
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", KINDS)
def test_tier_2_is_the_printed_formula(name, scale):
    torch.manual_seed(1)
    for _ in range(5):
        layer, words = random_layer(name, scale), torch.randn(6, INPUTS, dtype=torch.float64)
        u, w, b_ih, b_hh = by_gate(layer)
        drive = {gate: words.numpy() @ w[gate].T + b_ih[gate] for gate in w}
        low, high = ({gate: bound(drive[gate], axis=0) for gate in drive} for bound in (np.min, np.max))
        reach = incremental.exact_range(words, layer.weight_ih.detach(), layer.bias_ih.detach())
        found = incremental.contraction(gates_of(layer), reach)
        if name == "lstm":
            expected, largest = reference.tier_2_lstm(u, b_hh, low, high)
            np.testing.assert_allclose(found.largest.numpy(), largest, rtol=1e-12)
        else:
            expected = reference.tier_2_gru(u, b_hh, low, high, name.removeprefix("gru-"))
            assert found.largest.eq(1).all()
        assert found.rate.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["elman-tanh", "gru-before", "gru-after", "lstm"])
def test_tier_2_of_a_second_layer_reads_the_largest_outputs_of_the_first(name):
    torch.manual_seed(2)
    lower, upper = random_layer(name, 0.3), networks.randomise(Layer(networks.CELLS[name], SIZE, 2), 0.3)
    words = torch.randn(6, INPUTS, dtype=torch.float64)
    one, other = incremental.incremental(
        StackCore([lower, upper]), lambda weight, bias: incremental.exact_range(words, weight, bias)
    )
    reach = incremental.exact_range(words, lower.weight_ih.detach(), lower.bias_ih.detach())
    first = incremental.contraction(gates_of(lower), reach)
    centre, spread = upper.bias_ih.detach(), upper.weight_ih.detach().abs() @ first.largest
    above = incremental.contraction(gates_of(upper), incremental.Range(centre - spread, centre + spread))
    assert one.value == pytest.approx(first.rate.item(), rel=1e-12)
    assert other.value == pytest.approx(above.rate.item(), rel=1e-12)


def logit(p):
    return math.log(p / (1 - p))


def one_unit(name, factor):
    """A layer of one unit with positive weights whose tier 1 value is `factor`, and its fixed point.

    State and gates are chosen first, and the biases follow; the value is then proportional to the recurrent weights.
    """
    layer = random_layer(name, 0.5, size=1)
    torch.manual_seed(3)
    weights = torch.rand(len(LETTERS[name]), dtype=torch.float64) + 0.5
    h, x = 0.3, torch.zeros(1, INPUTS, dtype=torch.float64)
    if name == "lstm":
        i, f, o, c = 0.6, 0.7, 0.4, 0.9
        h = o * math.tanh(c)
        wanted, state = [logit(i), logit(f), math.atanh(c * (1 - f) / i), logit(o)], (h, c)
    else:
        wanted, state = [logit(0.4), logit(0.7), math.atanh(h)], (h,)
    state = tuple(torch.tensor([[value]], dtype=torch.float64) for value in state)

    def place(scale):
        u = scale * weights
        hidden = torch.zeros_like(u)
        inner = u * h
        if name == "gru-after":
            hidden[2] = 0.8 - inner[2]
            inner[2] = 0.4 * 0.8
        elif name == "gru-before":
            inner[2] = u[2] * 0.4 * h
        with torch.no_grad():
            layer.weight_hh.copy_(u.unsqueeze(1))
            layer.bias_hh.copy_(hidden)
            layer.bias_ih.copy_(torch.tensor(wanted, dtype=torch.float64) - inner)
        return certificate.contraction(layer, gates_of(layer), x, state).item()

    low, high = 0.0, 100.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if place(middle) < factor else (low, middle)
    return layer, x, state


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("factor", [1 - 1e-6, 1 + 1e-6])
def test_a_single_unit_with_positive_weights_is_stable_exactly_where_tier_1_holds(name, factor):
    layer, x, state = one_unit(name, factor)

    def step(flat):
        slots = flat.view(len(layer.shapes), 1, 1).unbind(0)
        return torch.cat(layer.cell.step(certificate.double_weights(layer), x, slots), dim=1)[0]

    at = torch.cat(state, dim=1)[0]
    torch.testing.assert_close(step(at), at, rtol=0, atol=1e-12)
    radius = torch.linalg.eigvals(torch.autograd.functional.jacobian(step, at)).abs().max().item()
    assert radius != 1
    assert (radius < 1) is (factor < 1)
    value = certificate.contraction(layer, gates_of(layer), x, state).item()
    assert value == pytest.approx(factor, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "limit"), [("elman-tanh", 1.0), ("elman-relu", 1.0), ("gru-after", 2.0), ("lstm", 2.0)]
)
def test_the_limit_of_tier_0_is_one_over_the_slope(name, limit):
    layer = random_layer(name, 0.5)
    (found,) = origin(StackCore([layer]))
    assert found.limit == limit
    with torch.no_grad():
        candidate_hidden(layer).copy_(torch.diag(torch.tensor([limit, 0.1, 0.2, 0.3])))
    (at_the_limit,) = origin(StackCore([layer]))
    assert not at_the_limit.holds
    with torch.no_grad():
        candidate_hidden(layer).mul_(1 - 1e-9)
    (below,) = origin(StackCore([layer]))
    assert below.holds


def test_the_sigmoid_has_no_tier_0_and_one_fixed_point_where_tier_1_holds():
    """Without input and biases h = 0 goes to 1/2; below sigma_1 = 4 all states come to one other fixed point."""
    layer = random_layer("elman-sigmoid", 0.5)
    stack = StackCore([layer])
    assert origin(stack) == []
    with torch.no_grad():
        layer.weight_hh.mul_(3.9 / torch.linalg.matrix_norm(layer.weight_hh, 2))
    (found,) = certificate.fixed_point_certificates(stack)
    assert found.value == pytest.approx(3.9 / 4)
    assert found.holds
    x, weights = torch.zeros(1, INPUTS, dtype=torch.float64), certificate.double_weights(layer)
    h = 5 * torch.randn(20, SIZE, dtype=torch.float64)
    for _ in range(2000):
        (h,) = layer.cell.step(weights, x, (h,))
    (settled,), _ = certificate.settle(layer, x)
    torch.testing.assert_close(h, settled.expand_as(h), rtol=0, atol=1e-9)
    assert settled.min() > 0


@pytest.mark.parametrize(("name", "slope"), [("elman-tanh", 1.0), ("elman-sigmoid", 0.25)])
def test_tier_2_of_an_elman_network_is_attained(name, slope):
    """Two states on opposite sides of the steepest place part by exactly the rate."""
    layer = random_layer(name, 0.5)
    with torch.no_grad():
        layer.bias_ih.zero_()
        layer.bias_hh.zero_()
    row = layer.weight_hh.detach().abs().sum(1)
    x, signs = torch.zeros(1, INPUTS, dtype=torch.float64), layer.weight_hh.detach()[row.argmax()].sign()
    weights = certificate.double_weights(layer)
    ends = [layer.cell.step(weights, x, (side * signs.unsqueeze(0),)) for side in (1e-4, -1e-4)]
    apart = (ends[0][0] - ends[1][0]).abs().max().item() / 2e-4
    reach = incremental.Range(torch.zeros(SIZE).double(), torch.zeros(SIZE).double())
    assert incremental.contraction(gates_of(layer), reach, slope).rate.item() == pytest.approx(apart, rel=1e-6)


@pytest.mark.slow
def test_the_exponent_leaves_out_the_steps_in_which_tangents_align():
    """The words of the warm-up contract by less than one half, silence by one half."""
    layer = networks.randomise(Layer(networks.CELLS["elman-tanh"], 1, 1))
    with torch.no_grad():
        layer.weight_hh.fill_(0.5)
        layer.weight_ih.fill_(1.0)
        layer.bias_ih.zero_()
        layer.bias_hh.zero_()
    words = torch.cat([torch.ones(10, 2, 1), torch.zeros(300, 2, 1)]).double()
    found = certificate.largest_exponent(StackCore([layer]), words, warm_up=60)
    assert found == pytest.approx(math.log(0.5), abs=1e-9)


def certified(cell, size, change):
    torch.manual_seed(0)
    model = build_model(config.Model(encoder=config.Lookup(size=4), core=config.Stack(sizes=(size,), cell=cell)), 7)
    with torch.no_grad():
        for parameter in networks.randomise(model).parameters():
            change(parameter)
    return certify(model, 7, torch.zeros(60, 1, dtype=torch.long))


@pytest.mark.slow
@every_pair(
    cell=[config.Elman(), config.GRU(), config.LSTM(), config.MinGRU()],
    value=[math.nan, math.inf],
    place=[slice(None), slice(1)],
)
def test_weights_that_are_not_finite_have_no_certificate(cell, value, place):
    found = certified(cell, 4, lambda weights: weights.view(-1)[place].fill_(value))
    assert all(math.isnan(line.value) and not line.holds for line in found)


def test_an_lstm_that_forgets_nothing_has_no_certificate_of_tier_1():
    """1 / (1 - f) is infinite where f is 1 in float64."""
    layer = Layer(networks.CELLS["lstm"], INPUTS, SIZE)
    networks.randomise(layer)
    with torch.no_grad():
        layer.weight_hh.fill_(1.0)
        layer.bias_hh.copy_(torch.tensor([-1e8, 1e8, 0.0, 0.0]).repeat_interleave(SIZE))
    (found,) = certificate.fixed_point_certificates(StackCore([layer]))
    assert math.isnan(found.value)
    assert not found.holds
