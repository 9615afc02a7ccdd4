"""Cores beside the plain stack: connections, Jordan's feedback, both directions, reservoirs."""

import copy

import numpy as np
import pytest
import torch

from elman import config
from elman.network.build import build_model
from elman.network.cells.cell import unroll
from elman.network.cores.core import Surroundings
from elman.network.cores.reservoir import ReservoirCore
from reference import cells as reference
from support import networks

STEPS = 7


def array(tensor):
    return tensor.detach().numpy()


def test_graves_gives_every_layer_the_input_and_every_layer_to_the_output():
    core = networks.connected("lstm", "graves", (4, 5, 2)).eval()
    x = torch.randn(STEPS, 2, 3, dtype=torch.float64)
    trace, _ = core(x, core.begin(2))
    below, outputs = None, []
    for layer in core.layers:
        given = x if below is None else torch.cat([x, below], dim=-1)
        below, _ = unroll(layer.cell.step, layer.weights(), given, layer.begin(2))
        outputs.append(below)
    torch.testing.assert_close(list(trace.levels[1:-1]), outputs)
    torch.testing.assert_close(trace.top, torch.cat(outputs, dim=-1))


def test_melis_adds_the_layers_up():
    core = networks.connected("lstm", "melis", (4, 4, 4)).eval()
    plain = networks.stack("lstm", sizes=(4, 4, 4)).eval()
    plain.layers.load_state_dict(core.layers.state_dict())
    x = torch.randn(STEPS, 2, 3, dtype=torch.float64)
    trace, levels = core(x, core.begin(2))[0], plain(x, plain.begin(2))[0].levels
    torch.testing.assert_close(trace.levels[:-1], levels)
    torch.testing.assert_close(trace.top, levels[1] + levels[2] + levels[3])


@pytest.mark.parametrize("connections", ["graves", "melis"])
def test_connected_levels_drop_as_a_stack_does(connections):
    core = networks.connected("lstm", connections, (40, 40), between_dropout=0.3, output_dropout=0.6).train()
    trace, _ = core(torch.randn(5, 4, 3, dtype=torch.float64), core.begin(4))
    for level, raw, rate in zip(trace.levels[1:], trace.raw[1:], (0.3, 0.3, 0.6), strict=True):
        dropped = (level == 0).double()
        assert abs(dropped.mean() - rate) < 0.12
        assert torch.equal(dropped, dropped[:1].expand_as(dropped))
        torch.testing.assert_close(level[level != 0], (raw / (1 - rate))[level != 0], rtol=1e-4, atol=1e-6)


def test_graves_is_the_chain_when_it_has_one_layer():
    core = networks.connected("lstm", "graves", (4,)).eval()
    x = torch.randn(STEPS, 2, 3, dtype=torch.float64)
    trace, _ = core(x, core.begin(2))
    torch.testing.assert_close(trace.levels[1], trace.top)


def jordan_model(**options):
    recipe = config.Model(encoder=config.Lookup(size=3), core=config.Jordan(size=4, **options))
    return networks.randomise(build_model(recipe, 6)).eval()


@pytest.mark.parametrize("decay", [0.0, 0.6])
def test_jordan_feeds_back_its_own_distribution(decay):
    model = jordan_model(decay=decay)
    words = torch.randint(6, (STEPS, 1))
    log_probs, (context,) = model.log_probs(words, model.begin(1))
    core, choice = model.core, model.output.choice
    expected, y = np.zeros((1, 6)), np.zeros((1, 6))
    for word, row in zip(words, log_probs, strict=True):
        expected = decay * expected + y
        x = array(model.encoder.weight)[word]
        h = reference.jordan(*map(array, (core.weight_ih, core.weight_ch, core.bias)), x, expected)
        z = np.exp(h @ array(choice.weight).T + array(choice.bias))
        y = z / z.sum()
        np.testing.assert_allclose(row.exp().detach(), y, rtol=1e-9)
    np.testing.assert_allclose(context.detach(), decay * expected + y, rtol=1e-9)


def test_forced_jordan_reads_the_true_targets():
    """c_t = sum over the past of decay^k times the vectors of the targets."""
    model = jordan_model(feedback="target", decay=0.5)
    words = torch.randint(6, (STEPS, 1))
    trace, _ = model.trace(words, model.begin(1))
    core, vectors = model.core, array(model.encoder.weight)[words]
    context = sum(0.5**back * vectors[-1 - back] for back in range(STEPS))
    h = reference.jordan(*map(array, (core.weight_ih, core.weight_ch, core.bias)), vectors[-1], context)
    np.testing.assert_allclose(array(trace.top[-1]), h, rtol=1e-9)


def test_jordans_gradient_goes_through_the_output():
    model = jordan_model()
    words, targets = torch.randint(6, (4, 2)), torch.randint(6, (4, 2))
    names = [name for name, _ in model.named_parameters()]

    def loss(*values):
        return torch.func.functional_call(
            _Scored(model), dict(zip([f"model.{n}" for n in names], values, strict=True)), (words, targets)
        )

    assert torch.autograd.gradcheck(loss, tuple(model.parameters()), fast_mode=True)


class _Scored(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, words, targets):
        return self.model.log_prob(words, targets, self.model.begin(2))[0].sum()


def test_a_copy_of_jordan_listens_to_itself():
    model = jordan_model()
    twin = copy.deepcopy(model)
    with torch.no_grad():
        model.output.choice.weight.mul_(0)
    words = torch.randint(6, (STEPS, 1))
    assert not torch.allclose(model.log_probs(words, model.begin(1))[0], twin.log_probs(words, twin.begin(1))[0])


def test_jordan_drops_the_same_units_at_every_step():
    model = networks.randomise(
        build_model(config.Model(encoder=config.Lookup(size=3), core=config.Jordan(size=50, output_dropout=0.5)), 6)
    ).train()
    trace, _ = model.trace(torch.randint(6, (STEPS, 2)), model.begin(2))
    dropped = trace.top == 0
    assert 0.2 < dropped.double().mean() < 0.8
    assert torch.equal(dropped, dropped[:1].expand_as(dropped))


@pytest.mark.parametrize("decay", [0.0, 0.6])
def test_what_jordans_network_hears_is_said_with_its_dropout(decay):
    model = jordan_model(output_dropout=0.5, decay=decay).train()
    trace, (context,) = model.trace(torch.randint(6, (3, 2)), model.begin(2))
    assert not torch.equal(trace.top, trace.raw[-1])
    said = (trace.top @ model.output.choice.weight.T + model.output.choice.bias).softmax(-1)
    torch.testing.assert_close(context, decay**2 * said[0] + decay * said[1] + said[2])


@pytest.mark.parametrize("leak", [1.0, 0.3])
def test_a_reservoir_is_jaegers(leak):
    core = ReservoirCore(config.Reservoir(size=20, leak=leak, bias_scale=0.5), Surroundings(3)).double().draw()
    x = torch.randn(STEPS, 2, 3, dtype=torch.float64)
    trace, _ = core(x, core.begin(2))
    s = np.zeros((2, 20))
    for given, state in zip(array(x), array(trace.top), strict=True):
        s = reference.reservoir(*map(array, (core.weight_ih, core.weight_hh, core.bias)), leak, given, s)
        np.testing.assert_allclose(state, s, rtol=1e-10, atol=1e-14)


def test_a_reservoir_has_the_radius_and_the_density_that_were_asked_for():
    core = (
        ReservoirCore(config.Reservoir(size=200, radius=1.1, density=0.05, input_scale=0.3), Surroundings(3))
        .double()
        .draw()
    )
    assert torch.linalg.eigvals(core.weight_hh).abs().max().item() == pytest.approx(1.1)
    assert (core.weight_hh != 0).double().mean().item() == pytest.approx(0.05, rel=0.1)
    assert 0.25 < core.weight_ih.abs().max() <= 0.3
    assert not core.bias.any()
    record = config.Reservoir(size=20)
    twins = [record.build(Surroundings(3)).draw(torch.Generator().manual_seed(4)) for _ in range(2)]
    assert torch.equal(twins[0].weight_hh, twins[1].weight_hh)


def test_only_the_output_of_a_reservoir_learns():
    recipe = config.Model(encoder=config.Lookup(size=3), core=config.Reservoir(size=20))
    model = build_model(recipe, 6).train()
    words = torch.randint(6, (STEPS, 2))
    model.log_prob(words, words, model.begin(2))[0].sum().backward()
    learns = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert learns == {"output.choice.weight", "output.choice.bias"}
    assert {"core.weight_ih", "core.weight_hh", "core.bias"} <= set(model.state_dict())
