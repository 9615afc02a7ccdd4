"""Monte Carlo dropout: the definition, the exact mean over all masks, and seeds."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from elman import config
from elman.config.inference import DropoutSampling
from elman.data.windows import EvaluationWindows
from elman.evaluation.monte_carlo import dropout_log_probs
from elman.evaluation.perplexity import token_log_probs
from elman.network import dropout
from elman.network.build import build_model
from elman.tasks.adaptation import dropout_figures
from support import networks

WINDOWS = SimpleNamespace(window=SimpleNamespace(length=5))
TOKENS = np.random.default_rng(0).integers(0, 7, 23)


def model_of(**rates):
    recipe = config.Model(encoder=config.Lookup(size=4), core=config.Stack(sizes=(3,), **rates))
    torch.manual_seed(1)
    return networks.randomise(build_model(recipe, 7)).eval()


def sampled(model, samples, seed=0, length=5, advance=None, tokens=TOKENS):
    windows = EvaluationWindows(tokens, 0, length=length)
    return dropout_log_probs(model, windows, DropoutSampling(samples=samples, seed=seed), advance)


def test_it_is_the_mean_of_the_probabilities_of_passes_in_training_mode():
    """By hand: window by window, with the state carried on, pass after pass from one seed."""
    model = model_of(recurrent_dropout=0.4, output_dropout=0.5)
    read = torch.tensor([0, *TOKENS[:-1]]).unsqueeze(1)
    model.train()
    torch.manual_seed(3)
    passes = []
    with torch.no_grad():
        for _ in range(4):
            state, found = model.begin(1), []
            for start in range(0, len(TOKENS), 5):
                targets = torch.from_numpy(TOKENS[start : start + 5]).unsqueeze(1)
                log_prob, state = model.log_prob(read[start : start + 5], targets, state)
                found.append(log_prob[:, 0])
            passes.append(torch.cat(found).exp().numpy())
    before = torch.get_rng_state()
    ours = sampled(model.eval(), 4, seed=3)
    np.testing.assert_allclose(ours, np.log(np.mean(passes, axis=0)), rtol=1e-10)
    assert torch.equal(torch.get_rng_state(), before)
    assert not model.training


@pytest.mark.slow
def test_many_passes_come_near_the_mean_over_all_masks():
    """Three units, one window of one step each: eight masks of the output, each with its probability."""
    model, rate = model_of(output_dropout=0.5), 0.5
    tokens = TOKENS[:6]
    read, state = torch.tensor([0, *tokens[:-1]]).unsqueeze(1), model.begin(1)
    trace, _ = model.trace(read, state)
    exact = torch.zeros(len(tokens), dtype=torch.float64)
    for kept in itertools.product((0, 1), repeat=3):
        mask = torch.tensor(kept).double() / (1 - rate)
        seen = trace._replace(levels=(*trace.levels[:-1], trace.top * mask))
        log_prob = model.output.log_prob(seen, torch.from_numpy(tokens).unsqueeze(1))[:, 0]
        exact += rate ** (3 - sum(kept)) * (1 - rate) ** sum(kept) * log_prob.exp().detach()
    far, near = (
        np.abs(np.exp(sampled(model, count, length=1, tokens=tokens)) - exact.numpy()).max() for count in (1, 300)
    )
    assert near < 0.03 < far


def test_a_seed_gives_the_same_figures_and_more_passes_continue_fewer():
    model, calls = model_of(weight_drop=0.5), []
    two = sampled(model, 2, seed=5, advance=lambda *progress: calls.append(progress))
    assert calls[-1] == (10, 10)
    assert len(calls) == 10
    np.testing.assert_array_equal(sampled(model, 2, seed=5), two)
    assert not np.allclose(sampled(model, 2, seed=6), two)
    three = sampled(model, 3, seed=5)
    third = np.exp(three) * 3 - np.exp(two) * 2
    assert ((third > 0) & (third < 1)).all()


def test_without_dropout_one_pass_is_evaluation():
    model = model_of()
    plain = token_log_probs(model, EvaluationWindows(TOKENS, 0))
    np.testing.assert_allclose(sampled(model, 1), plain, rtol=1e-6)


def test_tokens_without_a_probability_are_not_left_out():
    model = model_of(output_dropout=0.5)
    with torch.no_grad():
        model.encoder.weight[3] = torch.nan
    core = config.Stack(sizes=(3,), output_dropout=0.5)
    recipe = SimpleNamespace(model=config.Model(encoder=config.Lookup(size=4), core=core), training=WINDOWS)
    source = SimpleNamespace(
        column=lambda length: (model, EvaluationWindows(TOKENS, 0, length=length)),
        result=lambda score: score.result("test"),
    )
    found = dropout_figures(SimpleNamespace(recipe=recipe, path="run"), source, DropoutSampling(samples=2))
    assert math.isnan(found.nll)
    assert found.tokens == len(TOKENS)


def test_masks_are_held_for_a_window(monkeypatch):
    drawn, locked = [], dropout.locked
    monkeypatch.setattr(dropout, "locked", lambda x, rate: (drawn.append(len(x)) if rate else None) or locked(x, rate))
    sampled(model_of(output_dropout=0.5), 2, length=10)
    assert drawn == [10, 10, 3] * 2
