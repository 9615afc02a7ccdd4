"""Statements of the sources that need no training: elman beside a transcription in NumPy, in float64 where not said."""

import math

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from elman import config
from elman.analysis.dynamics import state_decay
from elman.analysis.output_functions import log_outputs
from elman.data.batches import Batch
from elman.learning.bptt import WholeWindow
from elman.learning.constraint import ConstrainedCore, spectral_radii
from elman.network.build import build_model
from elman.network.cores.core import build_core
from elman.network.cores.layer import plain_step
from elman.objective.loss import Objective
from support.networks import randomise


def gru(sizes, inputs, scale=1.0):
    """A stack of GRUs without biases, the reset gate before the product, with random weights."""
    record = config.Stack(sizes=sizes, cell=config.GRU(reset="before"), biases=0)
    return randomise(build_core(record, inputs, locked=True), scale)


def blocks(layer):
    """W_hh and W_xh of the candidate state, which is the last of three gates."""
    rows = slice(2 * layer.hidden_size, None)
    return layer.weight_hh.detach().numpy()[rows], layer.weight_ih.detach().numpy()[rows]


def jacobian(core):
    """dh_t / dh_{t-1} of all layers together at h = 0 without input, by automatic differentiation."""
    advance, sizes = plain_step(core), [layer.hidden_size for layer in core.layers]

    def after(h):
        state = tuple((part.unsqueeze(0),) for part in h.split(sizes))
        return torch.cat([h for (h,) in advance(torch.zeros(1, core.dims[0], dtype=h.dtype), state)], dim=1)[0]

    return torch.autograd.functional.jacobian(after, torch.zeros(sum(sizes), dtype=torch.float64)).numpy()


def printed_jacobian(core):
    """(3.9) with A_l = W_hh / 4 + I / 2 and B_l = W_xh / 2: B_l ... B_{m+1} A_m in row l and column m <= l.

    The thesis adds products with A_l ... A_{m+1}, which are of the step before: h_{l,t-1} is no function of h_{m,t-1}.
    """
    pairs = [blocks(layer) for layer in core.layers]
    a = [hidden / 4 + np.eye(len(hidden)) / 2 for hidden, _ in pairs]
    b = [below / 2 for _, below in pairs]
    rows = []
    for row in range(len(a)):
        cells = [np.zeros((len(a[row]), len(each))) for each in a]
        for column in range(row + 1):
            product = a[column]
            for between in range(column + 1, row + 1):
                product = b[between] @ product
            cells[column] = product
        rows.append(cells)
    return np.block(rows)


def radius(matrix):
    return max(abs(np.linalg.eigvals(matrix)))


@pytest.mark.parametrize("delta", [0.2, 0.8, 1.4])
@pytest.mark.parametrize("sizes", [(7,), (5, 4), (4, 6, 3, 5)])
def test_a_stack_of_constrained_layers_forgets(sizes, delta):
    """Thesis, Lemma 3.4 and (3.10): the radius of J is the largest of the layers', whatever the W_xh between them."""
    torch.manual_seed(len(sizes))
    core = gru(sizes, 3, 2.0)
    ConstrainedCore(core, config.Spectral(delta=delta)).project()
    found = jacobian(core)
    np.testing.assert_allclose(found, printed_jacobian(core), atol=1e-12)
    layers = [radius(blocks(layer)[0] / 4 + np.eye(layer.hidden_size) / 2) for layer in core.layers]
    assert radius(found) == pytest.approx(max(layers), abs=1e-6)
    assert spectral_radii(core) == pytest.approx(layers, abs=1e-9)
    assert radius(found) <= 1 - delta / 4 + 1e-4
    norms = state_decay(core, steps=300, kick=1e-6)
    assert norms[-1] < 1e-3 * norms.max()
    assert abs(blocks(core.layers[-1])[1]).max() > 2, "W_xh is not bounded here"


def test_one_layer_that_is_not_stable_is_enough():
    torch.manual_seed(0)
    core = gru((4, 5, 3), 3)
    ConstrainedCore(core, config.Spectral(delta=0.5)).project()
    with torch.no_grad():
        core.layers[1].weight_hh[10:] = 2.4 * torch.eye(5)
    assert radius(jacobian(core)) == pytest.approx(1.1)
    norms = state_decay(core, steps=40, kick=1e-6)
    assert norms[-1] > 5 * norms[5]


@pytest.mark.parametrize("kick", [1e-3, 1.0])
def test_beyond_the_bound_the_state_stays_at_one_norm(kick):
    """Thesis, 3.5.3: its clipped network stays near 4.7 after a kick, the constrained one falls to 0.

    With W_hh = w I and gates of 1/2 every unit goes to a solution of h = tanh(w h / 2): for w > 2 not to 0.
    """
    core = gru((9,), 9, 0.0)
    w = core.layers[0].weight_hh.detach()[18:]
    torch.nn.init.eye_(core.layers[0].weight_ih.detach()[18:])
    for factor in (1.8, 2.2, 2.6):
        w.copy_(factor * torch.eye(9))
        h = 0.9
        for _ in range(2000):
            h = h / 2 + np.tanh(factor * h / 2) / 2
        norms = state_decay(core, steps=800, kick=kick)
        assert norms[-1].item() == pytest.approx(3 * h, abs=1e-6)
    ConstrainedCore(core, config.Spectral(delta=0.2)).project()
    assert state_decay(core, steps=800, kick=kick)[-1] < 1e-15


def test_a_larger_delta_forgets_noise_sooner():
    """Thesis, 3.5.3: with gates of 1/2 two states that read the same inputs approach by 1 - delta / 4 or more a step.

    One reads noise at the first step; h -> h / 2 + tanh(W_xh x + W_hh h / 2) / 2 has this Lipschitz constant.
    """
    torch.manual_seed(1)
    xs, noise, steps = torch.randn(30, 1, 4, dtype=torch.float64), torch.randn(1, 4, dtype=torch.float64), np.arange(30)
    apart = {}
    for delta in (0.2, 0.5, 0.8, 1.1, 1.4):
        core = gru((6,), 4)
        with torch.no_grad():
            core.layers[0].weight_hh[:12], core.layers[0].weight_ih[:12] = 0, 0
            core.layers[0].weight_hh[12:] = 3 * torch.linalg.qr(core.layers[0].weight_hh[12:])[0]
        ConstrainedCore(core, config.Spectral(delta=delta)).project()
        noisy = torch.cat([xs[:1] + noise, xs[1:]])
        clean, disturbed = (core(each, core.begin(1))[0].levels[-1].detach().numpy() for each in (xs, noisy))
        apart[delta] = np.linalg.norm(clean - disturbed, axis=(1, 2))
        assert (apart[delta] <= apart[delta][0] * (1 - delta / 4) ** steps * (1 + 1e-4)).all()
    assert apart[0.2][-1] > 1e-6 > 1e-7 > apart[1.4][-1]


def test_three_points_on_a_line_have_three_directions_under_log_sigsoftmax():
    """Thesis, Theorem 4.3: u = (1, 2, 0), k = 0, 1, -1; log-softmax has two (Theorem 4.2)."""
    sigm, rows = lambda x: 1 / (1 + math.exp(-x)), []
    for k in (0, 1, -1):
        total = math.log((1 + 2 * sigm(k) * math.exp(k) + 2 * sigm(2 * k) * math.exp(2 * k)) / 2)
        one = [2 * k - math.log(1 + math.exp(k)), 4 * k - math.log(1 + math.exp(2 * k)), -math.log(2)]
        rows.append([value - total for value in one])  # (4.18)
    scores = torch.tensor([[0.0, 0, 0], [1, 2, 0], [-1, -2, 0]], dtype=torch.float64)
    found = log_outputs("sigsoftmax", scores)
    np.testing.assert_allclose(found, rows, rtol=1e-12)
    np.testing.assert_allclose(found[0], -math.log(3), rtol=1e-12)  # (4.19)
    first = (2 + math.log(1 + math.exp(-1)) - math.log(2)) / (2 - math.log(1 + math.e) + math.log(2))
    bracket = first * (4 - math.log(1 + math.exp(2)) + math.log(2)) - 4 - math.log(1 + math.exp(-2)) + math.log(2)
    assert abs(bracket) > 0.05, "(4.30): alpha_3 is 0"
    singular = {name: torch.linalg.svdvals(log_outputs(name, scores)) for name in ("sigsoftmax", "softmax")}
    assert singular["sigsoftmax"][2] > 0.01
    assert singular["softmax"][2] < 1e-14


def float32_softplus(z, target, epsilon):
    """Loss and its gradient by the formulas of 4.2.3 as a program would, in single precision."""
    one, z = np.float32(1), z.astype(np.float32)
    with np.errstate(all="ignore"):
        g, slope = np.log(one + np.exp(z)) + np.float32(epsilon), one / (one + np.exp(-z))
        gradient = slope / g.sum()
        gradient[target] -= slope[target] / g[target]
        return -np.log(g[target] / g.sum()), gradient


def test_softplus_without_epsilon_diverges_and_in_the_log_domain_does_not():
    """Thesis, 4.2.3: its training with softplus diverged until a small constant was added to what it divides by.

    After one step at a rate of 80 a score of -19 has log(1 + exp(z)) = 0 in single precision.
    """
    rate, targets = 80.0, (0, 2, 1, 0, 2, 2, 1, 1)
    ends = {}
    for epsilon in (0.0, 1e-8):
        z, losses = np.zeros(3), []
        for target in targets:
            loss, gradient = float32_softplus(z, target, epsilon)
            losses.append(loss)
            z = z - rate * gradient
        ends[epsilon] = losses
    assert np.isposinf(ends[0.0][1])
    assert np.isnan(ends[0.0][-1])
    assert np.isfinite(ends[1e-8]).all()

    z, losses = torch.zeros(1, 3, requires_grad=True), []
    for target in targets:
        loss = -log_outputs("softplus", z)[0, target]
        (gradient,) = torch.autograd.grad(loss, z)
        g = np.logaddexp(0, z.detach().double().numpy()[0])
        assert loss.item() == pytest.approx(np.log(g.sum()) - np.log(g[target]), rel=1e-5, abs=1e-6)
        losses.append(loss.item())
        z = (z.detach() - rate * gradient).requires_grad_()
    assert np.isfinite(losses).all()
    assert losses[1] > 19


@pytest.mark.parametrize("units", [8, 16, 32])
def test_back_propagation_through_time_costs_the_length_times_the_square_of_the_units(units):
    """Survey, "BPTT": O(T N^2). Counted: three products per weight and token, without the error of the first state."""
    words, rows, inputs = 7, 3, 5
    core = config.Stack(sizes=(units,), cell=config.Elman(), biases=1)
    model = build_model(config.Model(encoder=config.Lookup(size=inputs), core=core), words)
    for steps in (1, 5, 10, 40):
        tokens = torch.randint(words, (steps + 1, rows))
        learner = WholeWindow()
        with FlopCounterMode(display=False) as counter:
            learner(model, Objective(), Batch(tokens[:-1], tokens[1:]), learner.begin(model, rows))
        each = 2 * rows * (units * units + inputs * units + units * words)
        assert counter.get_total_flops() == 3 * steps * each - 2 * rows * units * units
