"""Ridge regression, whole and streamed, and a reservoir that continues the Mackey-Glass series by itself."""

import numpy as np
import pytest
import torch

from elman import config
from elman.errors import UserError
from elman.learning.echo_state import NormalEquations, fit_next, fit_readout, fit_ridge
from elman.network.cores.core import Surroundings
from elman.network.cores.reservoir import ReservoirCore


def mackey_glass(steps, tau=17, parts=10, seed=0):
    """dx/dt = 0.2 x(t - tau) / (1 + x(t - tau)^10) - 0.1 x(t), by Runge-Kutta steps of 1 / parts."""
    delay, h = tau * parts, 1 / parts
    x = np.empty(delay + 1 + (steps + 500) * parts)
    x[: delay + 1] = 1.2 + 0.1 * np.random.default_rng(seed).standard_normal()

    def slope(now, then):
        return 0.2 * then / (1 + then**10) - 0.1 * now

    for t in range(delay, len(x) - 1):
        then, later = x[t - delay], x[t - delay + 1]
        a = slope(x[t], then)
        b = slope(x[t] + h / 2 * a, (then + later) / 2)
        c = slope(x[t] + h / 2 * b, (then + later) / 2)
        d = slope(x[t] + h * c, later)
        x[t + 1] = x[t] + h / 6 * (a + 2 * b + 2 * c + d)
    return torch.from_numpy(x[-steps * parts :: parts].copy())


def test_ridge_is_the_closed_form():
    x, y = torch.randn(40, 7, dtype=torch.float64), torch.randn(40, 3, dtype=torch.float64)
    expected = np.linalg.solve((x.t() @ x).numpy() + 0.3 * np.eye(7), (x.t() @ y).numpy())
    np.testing.assert_allclose(fit_ridge(x, y, 0.3), expected, rtol=1e-13)
    equations = NormalEquations(7, 3)
    for piece in (slice(0, 1), slice(1, 33), slice(33, 40)):
        equations.add(x[piece], y[piece])
    assert equations.count == 40
    np.testing.assert_allclose(equations.solve(0.3), expected, rtol=1e-13)


def test_few_positions_and_float32():
    x, y = torch.randn(3, 7), torch.randn(3, 2)
    fitted = fit_ridge(x, y, 1e-4)
    assert fitted.dtype == torch.float32
    wide, wanted = x.double(), y.double()
    exact = torch.linalg.solve(wide.t() @ wide + 1e-4 * torch.eye(7), wide.t() @ wanted)
    torch.testing.assert_close(fitted.double(), exact, atol=2e-6, rtol=0)


def test_the_streamed_readout_is_the_whole_one():
    series = torch.randn(300, 2, 1, dtype=torch.float64).cumsum(0).sin()
    core = ReservoirCore(config.Reservoir(size=30, leak=0.5), Surroundings(1)).double().draw()
    whole = fit_readout(core, series[:-1], series[1:], washout=50, penalty=1e-3)
    for chunk in (1, 40, 50, 1000):
        streamed = fit_next(core, series, washout=50, penalty=1e-3, chunk=chunk)
        torch.testing.assert_close(streamed.readout, whole.readout, rtol=1e-9, atol=1e-9)


def test_generation_goes_on_from_any_point():
    core = ReservoirCore(config.Reservoir(size=30), Surroundings(2)).double().draw()
    series = torch.randn(100, 3, 2, dtype=torch.float64).cumsum(0).sin()
    network = fit_next(core, series, washout=10, penalty=1e-2)
    said, state = network.predict(series, network.begin(3))
    whole, _ = network.generate(said[-1], state, 7)
    first, between = network.generate(said[-1], state, 3)
    rest, _ = network.generate(first[-1], between, 4)
    torch.testing.assert_close(torch.cat([first, rest]), whole)
    one_step, _ = network.predict(said[-1:], state)
    torch.testing.assert_close(whole[0], one_step[0])


def test_a_washout_must_leave_something():
    core = ReservoirCore(config.Reservoir(size=5), Surroundings(1)).draw()
    for steps in (50, 100):
        with pytest.raises(UserError, match=f"a washout of 100 steps leaves nothing of a series of {steps};"):
            fit_readout(core, torch.zeros(steps, 1, 1), torch.zeros(steps, 1, 1))
    fit_readout(core, torch.zeros(101, 1, 1), torch.zeros(101, 1, 1))


@pytest.mark.slow
def test_a_reservoir_predicts_mackey_glass_84_steps_ahead():
    """The measure of Jaeger & Haas 2004: runs of its own from many points, the error after 84 steps.

    Measured: 0.00012; with a leak of 1 it would be 0.00038.
    """
    values = mackey_glass(6200)
    series = (values - 1).tanh()[:, None, None]
    core = ReservoirCore(
        config.Reservoir(size=500, radius=1.0, leak=0.7, density=0.02, bias_scale=0.2), Surroundings(1)
    ).double()
    network = fit_next(core.draw(torch.Generator().manual_seed(0)), series[:3200], washout=200)
    starts = torch.arange(3300, 6100, 50)
    heard, _ = core.run(series, core.begin(1))
    said, _ = network.predict(series, network.begin(1))
    ahead, _ = network.generate(said[starts, 0], (heard[starts, 0],), 83)
    found = ahead[-1, :, 0].atanh() + 1
    nrmse = ((found - values[starts + 84]).square().mean() / values.var()).sqrt().item()
    assert nrmse < 0.0002
