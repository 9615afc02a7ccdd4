"""Tiers 1 and 2 can be trained for: the hinge is zero with the certificate, and goes down when it is followed."""

import pytest
import torch

from elman import config
from elman.analysis.stability import certify
from elman.data.batches import Batch
from elman.errors import UserError
from elman.network.build import build_model
from elman.network.stability import incremental
from elman.network.stability.certificate import gates_of
from elman.objective.loss import build_objective
from elman.objective.penalties import Stability, smooth_norm
from support import networks

CELLS = {"before": config.GRU(reset="before"), "after": config.GRU(), "lstm": config.LSTM(), "elman": config.Elman()}
TIERS = (1, 2)


def network(name, scale, **core):
    model = networks.model(cell=CELLS[name], words=9, **core)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale / 0.7)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", CELLS)
def test_following_the_penalty_brings_the_certificate(name, tier):
    torch.manual_seed(0)
    model = network(name, 1.5, biases=0) if tier == 1 else network(name, 0.4)
    penalty = Stability(weight=1.0, tier=tier).hinge
    optimiser = torch.optim.Adam(model.core.parameters(), 0.03)
    assert penalty(model) > 0
    for _ in range(1000):
        optimiser.zero_grad()
        loss = penalty(model)
        if loss == 0:
            break
        loss.backward()
        optimiser.step()
    assert penalty(model) == 0
    assert all(line.holds for line in certify(model, 9) if line.tier == tier)


@pytest.mark.parametrize("tier", TIERS)
def test_a_margin_adds_to_the_hinge_of_every_layer(tier):
    torch.manual_seed(0)
    model = network("after", 3.0, biases=0)
    wide, narrow = (Stability(weight=2.0, tier=tier, margin=margin).hinge(model).item() for margin in (0.3, 0.1))
    assert wide - narrow == pytest.approx(2.0 * 0.2 * len(model.core.layers), rel=1e-4)


def test_the_smooth_norm_is_an_upper_bound():
    torch.manual_seed(0)
    for _ in range(20):
        matrix = torch.randn(8, 8, dtype=torch.float64)
        exact = torch.linalg.matrix_norm(matrix, 2)
        assert exact <= smooth_norm(matrix) <= exact * 8 ** (1 / 16)


def test_the_objective_adds_it_without_touching_the_nll():
    torch.manual_seed(0)
    model = network("after", 1.5, biases=0)
    words = torch.randint(9, (5, 2))
    batch, state = Batch(words[:-1], words[1:]), model.begin(2)
    plain = config.Training(epochs=1, optimiser=config.SGD(lr=1.0))
    penalties = config.Penalties(stability=0.5, stability_tier=1)
    with_it = config.Training(epochs=1, optimiser=config.SGD(lr=1.0), penalties=penalties)
    one, _ = build_objective(plain)(model, batch, state)
    other, _ = build_objective(with_it)(model, batch, state)
    torch.testing.assert_close(other.objective - one.objective, other.penalty)
    assert other.penalty > 0
    assert other.nll_sum == one.nll_sum


def test_a_model_without_recurrent_layers_is_refused():
    model = build_model(config.Model(encoder=config.Lookup(size=3), core=config.FeedForward(width=2, size=4)), 5)
    with pytest.raises(UserError, match=r"training\.penalties\.stability needs layers in a chain"):
        Stability(weight=1.0, margin=0.1).hinge(model)
    with pytest.raises(UserError, match=r"a certificate of stability needs layers in a chain"):
        certify(model, 5)


@pytest.mark.parametrize("name", CELLS)
def test_the_hinge_of_tier_2_is_the_sum_of_the_rates_over_the_box_of_all_words(name):
    """With a margin of 1 nothing is cut off; the largest word vector is scaled as the encoder scales it."""
    recipe = config.Model(encoder=config.Lookup(size=3, scale=2.5), core=config.Stack(sizes=(4, 2), cell=CELLS[name]))
    model = networks.randomise(build_model(recipe, 9), 0.3)
    largest, rates = 2.5 * model.encoder.weight.detach().abs().max(0).values, []
    for layer in model.core.layers:
        reach = layer.weight_ih.detach().abs() @ largest
        bounds = incremental.Range(layer.bias_ih.detach() - reach, layer.bias_ih.detach() + reach)
        rate, largest = incremental.contraction(gates_of(layer), bounds)
        rates.append(rate.item())
    assert Stability(weight=2.0, margin=1.0).hinge(model).item() == pytest.approx(2.0 * sum(rates))
