"""Densities of real values: the papers' equations, gradients, integrals, samples and the change of units."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from elman import config
from elman.errors import UserError
from elman.network.build import build_model
from elman.network.output.choice import Surroundings
from elman.network.output.density import Rescaled
from elman.network.output.gaussian import GaussianChoice
from elman.network.output.gaussian_mixture import GaussianMixtureChoice
from reference import densities as reference
from support import networks

WIDTH, FLOOR = 3, 0.05
CHOICES = {
    "unit": lambda columns: GaussianChoice(config.Gaussian(variance="unit"), Surroundings(WIDTH, columns)),
    "learned": lambda columns: GaussianChoice(config.Gaussian(floor=FLOOR), Surroundings(WIDTH, columns)),
    "mixture": lambda columns: GaussianMixtureChoice(
        config.GaussianMixture(components=3, floor=FLOOR), Surroundings(WIDTH, columns)
    ),
}
choices = pytest.mark.parametrize("name", CHOICES)


def build(name, columns=2):
    return networks.randomise(CHOICES[name](columns)).double()


@choices
def test_density_is_that_of_the_paper(name):
    choice = build(name)
    context, values = torch.randn(4, 2, WIDTH).double(), torch.randn(4, 2).double()
    arrays = {key: parameter.detach().numpy() for key, parameter in choice.named_parameters()}
    ours = choice.log_prob(context, values).exp().detach().numpy()
    for n, k in itertools.product(range(4), range(2)):
        place = values[n].numpy(), context[n, k].numpy(), arrays
        expected = (
            reference.mixture_density(*place, 3, FLOOR) if name == "mixture" else reference.gaussian(*place, FLOOR)
        )
        np.testing.assert_allclose(ours[n, k], expected, rtol=1e-10)


@pytest.mark.slow
@choices
def test_density_integrates_to_one(name):
    choice, context = build(name, columns=1), torch.randn(1, 1, WIDTH).double()
    grid = torch.linspace(-60, 60, 240_001).double().unsqueeze(1)
    density = choice.log_prob(context.expand(len(grid), -1, -1), grid).exp().detach()
    assert torch.trapezoid(density[:, 0], grid[:, 0]).item() == pytest.approx(1, abs=1e-6)


@choices
def test_densities_have_the_gradients_of_finite_differences(name):
    choice = build(name)
    context = torch.randn(3, 2, WIDTH).double().requires_grad_(True)
    values = torch.randn(3, 2).double().requires_grad_(True)
    assert torch.autograd.gradcheck(choice.log_prob, (context, values))


@choices
def test_the_probability_below_a_value_has_the_density_as_its_slope(name):
    choice, context = build(name, columns=1), torch.randn(4, WIDTH).double()
    units = SimpleNamespace(mean=torch.tensor([3.0]).double(), deviation=torch.tensor([2.0]).double())
    for one in (choice, Rescaled(choice, units, torch.tensor([0.4]).double())):
        values = torch.randn(4, 1).double().requires_grad_(True)
        below = one.below(context, values)
        (slope,) = torch.autograd.grad(below.sum(), values)
        torch.testing.assert_close(slope, one.log_prob(context.unsqueeze(1), values).exp())
        assert one.below(context, values - 1e6).max() == 0


@choices
def test_samples_have_the_mean_of_the_density(name):
    choice, context = build(name), torch.randn(1, WIDTH).double()
    with torch.no_grad():
        drawn = choice.sample(context.expand(40_000, -1), 1.0, torch.Generator().manual_seed(1))
        mean = choice.mean(context)
    assert (drawn.mean(0) - mean[0]).abs().max() < 5 * drawn.std(0).max() / math.sqrt(len(drawn))


def test_the_mean_of_a_mixture_counts_each_component_by_its_weight():
    choice, context = build("mixture"), torch.randn(4, WIDTH).double()
    with torch.no_grad():
        choice.centre.bias.copy_(torch.tensor([5.0, -7, 11, 13, -17, 19]))
        log_weight, means, _ = choice.components(context)
        expected = sum(log_weight[:, [at]].exp() * means[:, at] for at in range(3))
        torch.testing.assert_close(choice.mean(context), expected)


@choices
def test_temperature_zero_returns_a_mean(name):
    choice, context = build(name), torch.randn(5, WIDTH).double()
    drawn = choice.sample(context, 0.0, None)
    assert torch.equal(drawn, choice.sample(context, 0.0, None))
    if name != "mixture":
        torch.testing.assert_close(drawn, choice.mean(context))


def test_the_temperature_multiplies_the_variance_of_each_component():
    """With one component that has all the weight a mixture draws as one normal distribution does."""
    choice, context = build("mixture"), torch.randn(1, WIDTH).double()
    with torch.no_grad():
        choice.weight.bias.copy_(torch.tensor([-200.0, 200.0, -200.0]))
        _, means, variances = choice.components(context)
        drawn = choice.sample(context.expand(40_000, -1), 0.25, torch.Generator().manual_seed(1))
    torch.testing.assert_close(drawn.var(0), 0.25 * variances[0, 1], rtol=0.03, atol=0)
    assert (drawn.mean(0) - means[0, 1]).abs().max() < 5 * drawn.std(0).max() / math.sqrt(len(drawn))


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_the_temperature_divides_the_log_weights(temperature):
    """Components far apart, so that a value names its own."""
    choice, context = build("mixture", columns=1), torch.randn(1, WIDTH).double()
    with torch.no_grad():
        choice.centre.bias += torch.tensor([-1000.0, 0.0, 1000.0])
        log_weight, means, _ = choice.components(context)
        drawn = choice.sample(context.expand(40_000, -1), temperature, torch.Generator().manual_seed(1))
    found = (drawn - means[0, :, 0]).abs().argmin(1).bincount(minlength=3) / len(drawn)
    torch.testing.assert_close(found.double(), (log_weight[0] / temperature).softmax(0), atol=0.01, rtol=0)


@pytest.mark.parametrize(("name", "temperature"), [("unit", 0.25), ("learned", 0.25), ("learned", 2.0)])
def test_the_temperature_multiplies_the_variance(name, temperature):
    choice, context = build(name), torch.randn(1, WIDTH).double()
    with torch.no_grad():
        once, many = (
            choice.sample(context, at, torch.Generator().manual_seed(1)) - choice.mean(context)
            for at in (1.0, temperature)
        )
    torch.testing.assert_close(many, once * math.sqrt(temperature))


def test_a_mixture_at_temperature_zero_returns_the_mean_of_its_heaviest_component():
    choice, context = build("mixture"), torch.randn(6, WIDTH).double()
    log_weight, means, _ = choice.components(context)
    expected = torch.stack([rows[index] for rows, index in zip(means, log_weight.argmax(1), strict=True)])
    assert len(log_weight.argmax(1).unique()) > 1
    torch.testing.assert_close(choice.sample(context, 0.0, None), expected)


def test_variance_has_a_floor():
    choice = build("learned")
    with torch.no_grad():
        choice.spread.weight.zero_()
        choice.spread.bias.fill_(-100)
    context = torch.randn(1, 1, WIDTH).double()
    highest = choice.log_prob(context, choice.mean(context)[:, 0]).item()
    assert highest == pytest.approx(-2 * math.log(FLOOR) - math.log(2 * math.pi))


def test_mixture_far_from_every_mean_has_a_finite_log_density():
    values = torch.full((1, 2), 1e6).double()
    assert torch.isfinite(build("mixture").log_prob(torch.randn(1, 1, WIDTH).double(), values)).all()


@choices
def test_rescaled_density_is_in_the_units_of_the_data(name):
    choice = build(name)
    mean, deviation = torch.tensor([5.0, -1.0]), torch.tensor([10.0, 0.25])
    rescaled, context = (
        Rescaled(choice, SimpleNamespace(mean=mean, deviation=deviation)),
        torch.randn(4, 1, WIDTH).double(),
    )
    values = torch.randn(4, 2).double()
    inner = choice.log_prob(context, values)
    outer = rescaled.log_prob(context, mean + deviation * values)
    torch.testing.assert_close(outer, inner - math.log(10.0 * 0.25))
    torch.testing.assert_close(rescaled.mean(context), mean + deviation * choice.mean(context))


def test_choice_of_other_data_is_refused():
    recipe = config.Model(encoder=config.Values(), core=config.Stack(sizes=(4,)))
    with pytest.raises(UserError, match=r"model\.output\.choice .*gaussian"):
        build_model(recipe, 2)
