"""The continuous-time cell: its limit of short steps, its limit of steps as long as tau, and its time constants."""

import math

import pytest
import torch

from elman import config
from elman.network.build import build_model
from elman.network.cells.cell import Weights, unroll
from support import networks


def approach(dt, seconds=3.0, tau=2.0):
    """The state after `seconds` of a unit without recurrent weights whose drive is held at 0.7."""
    cell = config.Continuous(dt=dt, tau=(tau, tau))
    weights = Weights(torch.ones(1, 1).double(), torch.zeros(1, 1).double())
    xs = torch.full((round(seconds / dt), 1, 1), 0.7, dtype=torch.float64)
    return cell.scan(weights, xs, (torch.zeros(1, 1).double(),))[1][0].item()


def test_short_steps_follow_the_differential_equation():
    """tanh(0.7) (1 - e^{-t / tau}); half the step is half the error, as of Euler's method."""
    exact = math.tanh(0.7) * (1 - math.exp(-3 / 2))
    errors = [abs(approach(dt) - exact) for dt in (0.02, 0.01, 0.005)]
    assert errors[0] < 2e-3
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.02)
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.02)


def test_a_step_as_long_as_the_time_constants_is_elmans_cell():
    cell, elman = config.Continuous(dt=1.5, tau=(1.5, 1.5)), networks.CELLS["elman-tanh"]
    w, xs = networks.weights(elman), torch.randn(5, 2, 3, dtype=torch.float64)
    state = networks.state(elman)
    torch.testing.assert_close(cell.scan(w, xs, state), unroll(elman.step, w, xs, state))


def test_time_constants_are_a_geometric_progression_and_learned_ones_begin_there():
    record = config.Continuous(tau=(2.0, 16.0), dt=0.5)
    like = torch.zeros(1, dtype=torch.float64)
    torch.testing.assert_close(record.time_constants(4, like), torch.tensor([2.0, 4.0, 8.0, 16.0]).double())
    learned = config.Continuous(tau=(2.0, 16.0), dt=0.5, learned=True)
    models = []
    for cell in (record, learned):
        torch.manual_seed(0)
        recipe = config.Model(encoder=config.Lookup(size=3), core=config.Stack(sizes=(4,), cell=cell))
        models.append(build_model(recipe, 7).double())
    fixed, trained = models
    inputs = torch.randint(7, (6, 2))
    assert torch.equal(trained.core.layers[0].tau_shift, torch.zeros(4))
    for model in models:  # the same weights in both, drawn in the same order
        torch.manual_seed(1)
        for name, parameter in model.named_parameters():
            if "tau_shift" not in name:
                parameter.data.normal_(0, 0.5)
    found = [model.log_probs(inputs, model.begin(2))[0] for model in (fixed, trained)]
    torch.testing.assert_close(*found)
    found[1].sum().backward()
    assert trained.core.layers[0].tau_shift.grad.abs().min() > 0


def test_states_stay_in_the_range_of_the_nonlinearity():
    cell = networks.CELLS["continuous"]
    w = networks.weights(cell)
    outputs, _ = cell.scan(w, 50 * torch.randn(40, 2, 3).double(), (torch.zeros(2, 4).double(),))
    assert outputs.abs().max() < 1


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"dt": 2.5, "tau": (9.0, 2.0)}, r"must be at most the shortest time constant$"),
        ({"dt": 2.0, "tau": (2.0, 9.0), "learned": True}, "must be below the shortest time constant, where"),
    ],
)
def test_steps_longer_than_a_time_constant_are_refused(record, message):
    with pytest.raises(ValueError, match=message):
        config.Continuous(**record)
    assert config.Continuous(dt=2.0, tau=(2.0, 9.0))
