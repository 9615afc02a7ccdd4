"""Averages of parts: those of a recipe's training, beside any optimiser."""

import pytest
import torch
from torch.optim import swa_utils

from elman import config
from elman import nn as enn
from elman.config.parts import convert
from elman.learning.progress import Progress, record_validation

LOSSES = [5.0, 4.0, 4.2, 4.1, 3.9, 4.05, 4.0, 4.3, 3.8, 4.4]


@pytest.mark.parametrize("interval", [1, 2, 3, 5])
def test_averaging_begins_as_in_a_recipe(interval):
    record = {
        "averaging": {"kind": "non-monotone", "interval": interval},
        "epochs": 20,
        "batch_size": 2,
        "optimiser": {"kind": "sgd", "lr": 1.0},
    }
    training, progress = convert(record, config.Training), Progress()
    average = enn.TriggeredAverage(torch.nn.Linear(2, 2).parameters(), interval)
    for loss in LOSSES:
        before = progress.averaging
        record_validation(progress, training, loss, 0.0)
        assert average.update(loss) == (progress.averaging and not before)
        assert (average.average is not None) == progress.averaging
    assert average.losses == LOSSES


def test_an_average_begins_when_it_is_triggered_and_is_torchs():
    """As torch.optim.swa_utils computes it, after the steps since then."""
    model = torch.nn.Linear(3, 2)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    average, known = enn.TriggeredAverage(model.parameters(), interval=1), None
    for number, loss in enumerate([3.0, 2.0, 3.5, 9.0, 1.0]):
        if average.average is not None and known is None:
            known = swa_utils.AveragedModel(model)
        for _ in range(4):
            optimiser.zero_grad()
            model(torch.randn(5, 3)).square().sum().backward()
            optimiser.step()
            average.step()
            if known is not None:
                known.update_parameters(model)
        own = model.weight.detach().clone()
        with average.applied():
            expected = own if known is None else known.module.weight
            torch.testing.assert_close(model.weight, expected)
        assert torch.equal(model.weight, own)
        average.update(loss)
        assert (average.average is not None) == (number >= 2)
    assert average.average.count == 8


@pytest.mark.parametrize("decay", [None, 0.9])
def test_weights_of_steps(decay):
    weight = torch.nn.Parameter(torch.zeros(()))
    average = enn.WeightAverage([weight], decay)
    with average.applied():
        assert weight.item() == 0
    for value in (1.0, 2.0, 6.0):
        weight.data.fill_(value)
        average.step()
    shares = [1, 1, 1] if decay is None else [decay**2, decay, 1]
    with average.applied():
        assert weight.item() == pytest.approx((shares[0] + 2 * shares[1] + 6 * shares[2]) / sum(shares))
    assert weight.item() == 6


def test_a_state_continues():
    def walk(average, weight, values):
        for value in values:
            weight.data.fill_(value)
            average.step()
            average.update(value)

    one = torch.nn.Parameter(torch.zeros(()))
    whole = enn.TriggeredAverage([one], 1)
    walk(whole, one, LOSSES)
    two = torch.nn.Parameter(torch.zeros(()))
    first, second = enn.TriggeredAverage([two], 1), enn.TriggeredAverage([two], 1)
    walk(first, two, LOSSES[:4])
    second.load_state_dict(first.state_dict())
    walk(second, two, LOSSES[4:])
    assert second.losses == LOSSES
    assert second.average.count == whole.average.count > 4
    with second.applied(), whole.applied():
        assert one.item() == two.item() != LOSSES[-1]


def test_wrong_arguments_are_one_line():
    with pytest.raises(ValueError, match="interval is 0; it must be 1 or more"):
        enn.TriggeredAverage([], 0)
    with pytest.raises(ValueError, match="decay is 1; it must be 0 or more and below 1"):
        enn.WeightAverage([], 1.0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("decay", [None, 0.999])
def test_an_average_of_16_bits_does_not_stand_still(dtype, decay):
    """The share of a step is below half a unit in the last place of the average after some hundred steps."""
    weight = torch.nn.Parameter(torch.zeros(20, dtype=dtype))
    average, total, sum_of_shares = enn.WeightAverage([weight], decay), torch.zeros(20, dtype=torch.float64), 0.0
    draw = torch.Generator().manual_seed(0)
    for step in range(2000):
        weight.data.copy_(1 + step / 2000 + 0.3 * torch.randn(20, generator=draw))
        average.step()
        share = 1.0 if decay is None else decay
        total, sum_of_shares = share * total + weight.data.double(), share * sum_of_shares + 1
    with average.applied():
        torch.testing.assert_close(weight.detach().double(), total / sum_of_shares, rtol=6e-3, atol=0)
