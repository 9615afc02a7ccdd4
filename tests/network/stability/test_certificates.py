"""Certificates are sound: of hundreds of random systems that hold one, none is unstable."""

import math
from functools import partial

import pytest
import torch

from elman.network.cores.layer import Layer, plain_step
from elman.network.cores.stack import StackCore
from elman.network.stability import certificate, incremental
from elman.network.stability.certificate import gates_of, largest_exponent, origin, slope_of
from support import networks

KINDS = ("elman-tanh", "gru-before", "gru-after", "lstm")
SIZE, INPUTS, WORDS = 5, 3, 7


def random_layer(name, scale, bias=1.0, biases=2, inputs=INPUTS):
    layer = Layer(networks.CELLS[name], inputs, SIZE, biases=biases)
    networks.randomise(layer, scale)
    with torch.no_grad():
        for vector in (layer.bias_ih, layer.bias_hh):
            if vector is not None:
                vector.mul_(bias / scale)
    return layer


def jacobian(layer, x, state):
    """Of one step with respect to all slots of the state, by autograd."""
    weights = certificate.double_weights(layer)

    def step(flat):
        return torch.cat(layer.cell.step(weights, x, flat.view(len(layer.shapes), 1, SIZE).unbind(0)), dim=1)[0]

    return torch.autograd.functional.jacobian(step, torch.cat(state, dim=1)[0])


def radius(matrix):
    return torch.linalg.eigvals(matrix).abs().max().item()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gru-before", "gru-after", "lstm"])
def test_tier_0_keeps_the_origin_stable(name):
    """Thesis, Theorem 3.1, on random bias-free layers."""
    torch.manual_seed(0)
    certified = 0
    x = torch.zeros(1, INPUTS, dtype=torch.float64)
    for _ in range(60):
        layer = random_layer(name, float(torch.rand(()) + 0.1), biases=0)
        (certificate,) = origin(StackCore([layer]))
        zero = tuple(torch.zeros(1, SIZE, dtype=torch.float64) for _ in range(len(layer.shapes)))
        if certificate.holds:
            certified += 1
            assert radius(jacobian(layer, x, zero)) < 1
    assert certified > 12


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_tier_1_is_sound_at_fixed_points_with_biases(name):
    torch.manual_seed(1)
    certified, biased = 0, 0.0
    x = torch.zeros(1, INPUTS, dtype=torch.float64)
    for _ in range(50):
        layer = random_layer(name, float(torch.rand(()) * 1.2 + 0.05), bias=1.5)
        state, settled = certificate.settle(layer, x, steps=120, tolerance=1e-9)
        if not settled:
            continue
        value = certificate.contraction(layer, gates_of(layer), x, state).item()
        if value < 1:
            certified += 1
            biased = max(biased, state[0].abs().max().item())
            assert radius(jacobian(layer, x, state)) < 1
    assert certified > 4
    assert biased > 0.5


@pytest.mark.parametrize("name", ["gru-before", "gru-after"])
def test_k_gives_the_jacobian_of_a_gru(name):
    """J = diag(z) + diag(1 - z) K at a fixed point."""
    torch.manual_seed(2)
    layer = random_layer(name, 0.4)
    x = torch.randn(1, INPUTS, dtype=torch.float64)
    state, _ = certificate.settle(layer, x)
    gates = gates_of(layer)
    (k,) = certificate.blocks(layer, gates, x, state)
    z = ((x @ gates.input["z"].t())[0] + gates.bias("z") + gates.recurrent["z"] @ state[0][0]).sigmoid()
    torch.testing.assert_close(z.diag() + (1 - z).unsqueeze(1) * k, jacobian(layer, x, state), atol=1e-8, rtol=0)


def test_an_lstm_at_the_origin_needs_what_the_formula_says():
    """sigma_1(U_g) < (1 - f) / (i o) with gates from biases alone."""
    torch.manual_seed(3)
    layer = random_layer("lstm", 0.5)
    gate_biases = {"i": 0.3, "f": 1.0, "g": 0.0, "o": -0.2}
    with torch.no_grad():
        layer.bias_hh.zero_()
        layer.bias_ih.copy_(torch.cat([torch.full((SIZE,), value) for value in gate_biases.values()]))
    x = torch.zeros(1, INPUTS, dtype=torch.float64)
    state, _ = certificate.settle(layer, x)
    i, f, o = (1 / (1 + math.exp(-gate_biases[gate])) for gate in "ifo")
    sigma = torch.linalg.matrix_norm(gates_of(layer).recurrent["g"], 2).item()
    value = certificate.contraction(layer, gates_of(layer), x, state).item()
    assert value == pytest.approx(sigma * i * o / (1 - f))


def range_of(layer, words):
    gates = gates_of(layer)
    return gates, incremental.exact_range(words, layer.weight_ih.detach(), layer.bias_ih.detach(), chunk=3)


def test_the_exact_range_is_exact_and_within_the_box():
    torch.manual_seed(4)
    layer = random_layer("gru-after", 0.5)
    words = torch.randn(WORDS, INPUTS, dtype=torch.float64)
    _, reach = range_of(layer, words)
    shares = words @ layer.weight_ih.t() + layer.bias_ih
    torch.testing.assert_close(reach.low, shares.amin(0))
    torch.testing.assert_close(reach.high, shares.amax(0))
    box = incremental.box_range(words.abs().amax(0), layer.weight_ih, layer.bias_ih)
    assert (box.low <= reach.low).all()
    assert (box.high >= reach.high).all()


def test_the_range_over_frames_is_that_over_every_set_of_notes():
    torch.manual_seed(4)
    layer = random_layer("gru-after", 0.5)
    silence, notes = torch.randn(INPUTS, dtype=torch.float64), torch.randn(4, INPUTS, dtype=torch.float64)
    frames = silence + torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * 4) @ notes
    found = incremental.frames_range(silence, notes, layer.weight_ih, layer.bias_ih)
    for one, other in zip(found, incremental.exact_range(frames, layer.weight_ih, layer.bias_ih), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["elman-tanh", "elman-sigmoid", "gru-before", "gru-after"])
def test_tier_2_bounds_every_step(name):
    """No pair of states moves apart by more than the rate, whatever the word: on random layers."""
    torch.manual_seed(5)
    certified = 0
    for _ in range(100):
        layer = random_layer(name, float(10 ** (1.7 * torch.rand(()) - 2)), bias=0.5)
        words = torch.randn(WORDS, INPUTS, dtype=torch.float64)
        gates, reach = range_of(layer, words)
        rate = incremental.contraction(gates, reach, slope_of(layer) if "elman" in name else 1.0).rate.item()
        x = words[torch.randint(WORDS, (64,))]
        a, b = (2 * torch.rand(2, 64, SIZE, dtype=torch.float64) - 1).unbind(0)
        weights = certificate.double_weights(layer)
        apart = (layer.cell.step(weights, x, (a,))[0] - layer.cell.step(weights, x, (b,))[0]).abs().amax(1)
        assert (apart <= rate * (a - b).abs().amax(1) * (1 + 1e-12)).all()
        certified += rate < 1
    assert certified > 20


@pytest.mark.slow
def test_tier_2_of_an_lstm_brings_any_two_states_together():
    torch.manual_seed(6)
    certified = 0
    for _ in range(40):
        layer = random_layer("lstm", float(10 ** (1.5 * torch.rand(()) - 2)), bias=0.5)
        words = 0.5 * torch.randn(WORDS, INPUTS, dtype=torch.float64)
        gates, reach = range_of(layer, words)
        found = incremental.contraction(gates, reach)
        if found.rate >= 1:
            continue
        certified += 1
        weights = certificate.double_weights(layer)
        a, b = (tuple(2 * torch.rand(2, 16, SIZE, dtype=torch.float64) - 1) for _ in range(2))
        distance = []
        for _ in range(80):
            x = words[torch.randint(WORDS, (16,))]
            a, b = layer.cell.step(weights, x, a), layer.cell.step(weights, x, b)
            assert (a[0].abs() <= 1).all()
            distance.append(max((p - q).abs().max().item() for p, q in zip(a, b, strict=True)))
        assert distance[-1] <= 4 * distance[0] * found.rate.item() ** 79 + 1e-12
    assert certified > 10


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gru-before", "gru-after", "lstm"])
def test_tier_2_of_a_stack_brings_the_states_of_all_its_layers_together(name):
    """A cascade: the upper layer is certified for all that the lower one can show."""
    torch.manual_seed(9)
    certified = 0
    for _ in range(4):
        lower, upper = random_layer(name, 0.04, bias=0.2), random_layer(name, 0.04, bias=0.2, inputs=SIZE)
        words = torch.randn(WORDS, INPUTS, dtype=torch.float64)
        found = incremental.incremental(StackCore([lower, upper]), partial(incremental.exact_range, words))
        if max(line.value for line in found) >= 0.9:
            continue
        certified += 1
        advance = plain_step(StackCore([lower, upper]))
        a, b = (
            tuple(tuple(2 * torch.rand(len(lower.shapes), 8, SIZE, dtype=torch.float64) - 1) for _ in range(2))
            for _ in range(2)
        )
        for _ in range(250):
            x = words[torch.randint(WORDS, (8,))]
            a, b = advance(x, a), advance(x, b)
        assert all(
            (p - q).abs().max() < 1e-6 for one, other in zip(a, b, strict=True) for p, q in zip(one, other, strict=True)
        )
    assert certified > 1


def test_the_exponent_of_a_linear_system_is_known():
    """Elman's network near 0 is h W': the exponent is the logarithm of the spectral radius."""
    torch.manual_seed(7)
    layer = random_layer("elman-tanh", 1e-3, biases=0)
    with torch.no_grad():
        basis = torch.randn(SIZE, SIZE, dtype=torch.float64)
        layer.weight_hh.copy_(basis @ torch.diag(torch.tensor([0.9, 0.4, 0.3, 0.2, 0.1]).double()) @ basis.inverse())
    silence = torch.zeros(200, 2, INPUTS, dtype=torch.float64)
    assert largest_exponent(StackCore([layer]), silence) == pytest.approx(math.log(0.9), abs=1e-3)


def test_the_exponent_of_a_difference_that_is_gone_is_minus_infinity():
    """Of a ReLU with no unit on; no number that a longer text would change."""
    layer = random_layer("elman-relu", 0.1)
    with torch.no_grad():
        layer.bias_ih.fill_(-9.0)
    for steps in (60, 90):
        found = largest_exponent(StackCore([layer]), torch.zeros(steps, 2, INPUTS, dtype=torch.float64))
        assert found == -math.inf


@pytest.mark.slow
def test_the_exponent_is_not_above_what_tier_2_proves():
    torch.manual_seed(8)
    for name in ("gru-before", "gru-after"):
        layer = random_layer(name, 0.05, bias=0.2)
        words = torch.randn(WORDS, INPUTS, dtype=torch.float64)
        rate = incremental.contraction(*range_of(layer, words)).rate.item()
        assert rate < 1
        found = largest_exponent(StackCore([layer]), words[torch.randint(WORDS, (150, 4))])
        assert found <= math.log(rate) + 1e-3
