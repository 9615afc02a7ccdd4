"""Averages of the weights, and when NT-ASGD begins to take them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from elman import config
from elman.learning.averaging import Average, equal, exponential, polynomial, share_of
from elman.learning.progress import non_monotone
from reference import averaging as reference
from support import networks


def wander(parameters, average, steps):
    """Random steps; gives the values after each."""
    iterates = []
    for _ in range(steps):
        with torch.no_grad():
            for parameter in parameters:
                parameter.add_(torch.randn_like(parameter))
        average.update()
        iterates.append([parameter.detach().clone() for parameter in parameters])
    return iterates


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_average_is_the_mean_of_the_iterates(steps):
    """The weights before the first step do not count (t0 = 0 of ASGD)."""
    parameters = list(networks.model().parameters())
    average = Average(parameters)
    iterates = wander(parameters, average, steps)
    for value, *visited in zip(average.values, *iterates, strict=True):
        torch.testing.assert_close(value, torch.stack(visited).mean(0))


@pytest.mark.parametrize("compensated", [False, True])
@pytest.mark.parametrize("share", [equal, polynomial(3), exponential(0.99999)])
def test_a_long_average_follows_where_what_is_rounded_away_is_kept(share, compensated):
    """From step 400,000 on, the weights are elsewhere: each step moves the average by less than half of its spacing."""
    begun, steps = 400_000, 3000
    weights = [nn.Parameter(torch.full((2, 3), 0.7)), nn.Parameter(torch.full((2,), -0.3))]
    average = Average(weights, share, compensated=compensated)
    average.update()
    average.count = begun
    exact = [value.double() for value in average.values]
    for parameter, move in zip(weights, (3e-3, -1e-3), strict=True):
        parameter.data.add_(move)
    for step in range(1, steps + 1):
        average.update()
        for value, parameter in zip(exact, weights, strict=True):
            value.lerp_(parameter.detach().double(), share(begun + step))
        if step == 1000 and compensated:  # as a resumed run does
            again = Average(weights, share, compensated=True)
            again.restore({name: tensor.clone() for name, tensor in average.tensors().items()}, average.count)
            average = again
    errors = [
        ((value.double() - wanted) / wanted).abs().max().item()
        for value, wanted in zip(average.values, exact, strict=True)
    ]
    assert max(errors) < 6e-8 if compensated else max(errors) > 5e-6


def test_a_compensated_average_is_the_mean():
    parameters = list(networks.model().parameters())
    average = Average(parameters, compensated=True)
    iterates = wander(parameters, average, 7)
    for value, *visited in zip(average.values, *iterates, strict=True):
        torch.testing.assert_close(value, torch.stack(visited).mean(0))


@pytest.mark.parametrize(
    ("share", "weights"),
    [
        (exponential(0.9), [0.9**4, 0.9**3, 0.9**2, 0.9, 1]),
        (polynomial(0), [1, 1, 1, 1, 1]),
        (polynomial(1), [1, 2, 3, 4, 5]),
        (polynomial(2), [1, 3, 6, 10, 15]),
    ],
)
def test_steps_count_more_the_later_they_are(share, weights):
    """By powers of the decay, or about as a power of the step: i (i + 1) / 2 for 2. The weights before do not count."""
    parameters = list(networks.model().parameters())
    average = Average(parameters, share)
    iterates = wander(parameters, average, len(weights))
    shares = torch.tensor(weights, dtype=torch.float64) / sum(weights)
    for value, *visited in zip(average.values, *iterates, strict=True):
        expected = torch.tensordot(shares, torch.stack(visited).double(), 1)
        torch.testing.assert_close(value, expected.to(value))


@pytest.mark.parametrize(
    ("averaging", "newest"),
    [
        (None, 1 / 5),
        (config.Immediate(), 1 / 5),
        (config.NonMonotone(), 1 / 5),
        (config.Exponential(decay=0.5), 16 / 31),
        (config.Polynomial(power=3), 4 / 8),
    ],
)
def test_the_share_of_the_newest_of_five_steps(averaging, newest):
    assert share_of(averaging)(5) == pytest.approx(newest)


@pytest.mark.parametrize("tied", [False, True])
def test_applied_swaps_and_restores(tied):
    """Tied weights follow, and what is in the block is the average, bit for bit."""
    model = networks.model(tied=tied)
    parameters = list(model.parameters())
    average = Average(parameters)
    wander(parameters, average, 3)
    raw, mean = ([value.detach().clone() for value in values] for values in (parameters, average.values))
    with average.applied():
        assert all(torch.equal(*pair) for pair in zip(parameters, mean, strict=True))
        assert torch.equal(model.encoder.weight, model.output.choice.weight) == tied
    assert all(torch.equal(*pair) for pair in zip(parameters, raw, strict=True))
    assert all(torch.equal(*pair) for pair in zip(average.values, mean, strict=True))


def test_applied_restores_after_an_error():
    parameter = nn.Parameter(torch.ones(2))
    average = Average([parameter])
    wander([parameter], average, 2)
    raw = parameter.detach().clone()
    with pytest.raises(KeyError), average.applied():
        raise KeyError
    assert torch.equal(parameter, raw)


def test_averaging_goes_on_after_it_was_applied():
    parameters = [nn.Parameter(torch.zeros(3, dtype=torch.float64))]
    average = Average(parameters)
    first = wander(parameters, average, 2)
    with average.applied():
        pass
    both = first + wander(parameters, average, 2)
    torch.testing.assert_close(average.values[0], torch.stack([iterate[0] for iterate in both]).mean(0))


def test_averaging_does_not_disturb_the_optimiser():
    """The steps with averages taken and applied between them are the steps without."""

    def run(averaged):
        torch.manual_seed(1)
        parameter = nn.Parameter(torch.ones(3))
        optimiser = torch.optim.SGD([parameter], 0.1, momentum=0.9)
        average = Average([parameter])
        for _ in range(4):
            optimiser.zero_grad()
            parameter.square().sum().backward()
            optimiser.step()
            if averaged:
                average.update()
                with average.applied():
                    pass
        return parameter

    assert torch.equal(run(True), run(False))


@given(st.lists(st.integers(0, 8).map(float), max_size=15), st.integers(1, 5))
def test_non_monotone_is_the_published_rule(losses, interval):
    found = next((k for k in range(len(losses)) if non_monotone(losses[:k], losses[k], interval)), None)
    assert found == reference.triggers(losses, interval)


@given(st.lists(st.floats(1, 10), max_size=20), st.integers(1, 5))
def test_falling_losses_never_begin_averaging(losses, interval):
    falling = sorted(losses, reverse=True)
    assert not any(non_monotone(falling[:k], falling[k], interval) for k in range(len(falling)))
