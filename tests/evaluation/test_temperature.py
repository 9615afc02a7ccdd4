"""Temperatures: p^(1/T) for every output layer, what it leaves alone, and the T that fits a text best."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from elman import config
from elman.data.windows import EvaluationWindows
from elman.evaluation.perplexity import evaluate
from elman.evaluation.temperature import GREATEST, LEAST, best_temperature
from elman.network.build import build_model
from support import networks
from support.pairwise import every_value

WORDS = torch.from_numpy(np.random.default_rng(0).integers(0, 7, (6, 2)))
CHOICES = sorted(networks.CHOICES)


def of(choice, contexts="single"):
    torch.manual_seed(2)
    return networks.randomise(networks.choice_model(choice, contexts)).eval()


def drawn(model):
    """300 words that the model draws."""
    word, state, words = torch.tensor([0]), model.begin(1), []
    for _ in range(300):
        log_probs, state = model.step(word, state)
        word = torch.multinomial(log_probs[0].exp(), 1)
        words.append(word.item())
    return np.array(words)


@every_value(contexts=["single", "mos"], choice=CHOICES)
@torch.no_grad()
def test_every_distribution_is_its_power(choice, contexts):
    """Those listed and those of targets; the loss of training is the one at temperature 1."""
    model = of(choice, contexts)
    plain, _ = model.log_probs(WORDS, model.begin(2))
    trace, _ = model.trace(WORDS, model.begin(2))
    weight = torch.ones(6, 2, dtype=torch.float64)
    loss, _ = model.output.nll(model.output.contexts(trace), WORDS.flip(0), weight)
    model.output.temperature = 1.7
    expected = log_softmax(plain.numpy() / 1.7, axis=-1)
    found, _ = model.log_probs(WORDS, model.begin(2))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    of_targets, _ = model.log_prob(WORDS, WORDS.flip(0), model.begin(2))
    listed = np.take_along_axis(expected, WORDS.flip(0).unsqueeze(-1).numpy(), -1)[..., 0]
    np.testing.assert_allclose(of_targets, listed, rtol=1e-9)
    after, _ = model.output.nll(model.output.contexts(trace), WORDS.flip(0), weight)
    torch.testing.assert_close(after, loss)


@torch.no_grad()
def test_a_long_window_is_read_in_blocks(monkeypatch):
    model = of("flat")
    model.output.temperature = 0.6
    whole, _ = model.log_prob(WORDS, WORDS.flip(0), model.begin(2))
    monkeypatch.setattr("elman.network.output.layer.BLOCK", 5)
    parts, _ = model.log_prob(WORDS, WORDS.flip(0), model.begin(2))
    torch.testing.assert_close(parts, whole)


@torch.no_grad()
def test_what_a_jordan_network_feeds_back_has_no_temperature():
    recipe = config.Model(encoder=config.Lookup(size=3), core=config.Jordan(size=4))
    model = networks.randomise(build_model(recipe, 7)).eval()
    plain, _ = model.log_probs(WORDS, model.begin(2))
    model.output.temperature = 2.5
    found, _ = model.log_probs(WORDS, model.begin(2))
    np.testing.assert_allclose(found, log_softmax(plain.numpy() / 2.5, axis=-1), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("contexts", "sharper"), [("doc", 1.0), ("single", 0.2), ("single", 1.0), ("single", 5.0)])
@torch.no_grad()
def test_the_best_temperature_is_that_of_a_search(contexts, sharper):
    """By scipy over the loss of a text that the model itself drew; `sharper` then multiplies the scores of words."""
    torch.manual_seed(3)
    model = networks.model(contexts).eval()
    text = EvaluationWindows(drawn(model), 0)
    for parameter in model.output.choice.parameters():
        parameter *= sharper
    found = best_temperature(model, text)
    assert model.output.temperature == 1.0

    def loss(log_temperature):
        model.output.temperature = float(np.exp(log_temperature))
        return evaluate(model, text).nll

    expected = minimize_scalar(loss, bounds=(np.log(LEAST), np.log(GREATEST)), method="bounded")
    assert LEAST < 0.7 * sharper < np.exp(expected.x) < 1.4 * sharper < GREATEST
    assert np.log(found) == pytest.approx(expected.x, abs=2e-3)


@torch.no_grad()
def test_the_temperature_stays_in_its_range():
    """A model that is always right would be sharpened without end, and one that is always wrong flattened."""
    model = networks.model("single").eval()
    for parameter in model.output.choice.parameters():
        parameter.zero_()
    model.output.choice.bias[3] = 2.0
    assert LEAST <= best_temperature(model, EvaluationWindows(np.full(50, 3), 3)) < 0.2
    assert best_temperature(model, EvaluationWindows(np.full(50, 4), 4)) == pytest.approx(GREATEST)


@torch.no_grad()
def test_symbols_that_cannot_come_do_not_matter():
    """Under p^(1/T) they cannot come either."""
    torch.manual_seed(3)
    model = networks.model("single", words=7).eval()
    model.output.choice.bias[6] = -torch.inf
    tokens = drawn(model)
    found = best_temperature(model, EvaluationWindows(tokens, 0))
    model.output.choice.bias[6] = -1e3
    assert found == pytest.approx(best_temperature(model, EvaluationWindows(tokens, 0)), rel=1e-6)
