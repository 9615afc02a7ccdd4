"""Perplexity: the same whatever the windows, every token once, and nothing left behind in the model."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elman.data.windows import EvaluationWindows
from elman.errors import UserError
from elman.evaluation.perplexity import (
    Score,
    average_probabilities,
    evaluate,
    score_of,
    token_and_space_log_probs,
    token_log_probs,
)
from support import networks

TOKENS = np.random.default_rng(0).integers(0, 7, 61)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return networks.model("doc", "sigsoftmax").eval()


@pytest.fixture(scope="module")
def expected(model):
    """Token by token through `step`, the plainest way there is."""
    log_probs, state, before = [], model.begin(1), 0
    for token in TOKENS:
        log_prob, state = model.step(torch.tensor([before]), state)
        log_probs.append(log_prob[0, token].item())
        before = int(token)
    return np.array(log_probs)


@pytest.mark.slow
@given(length=st.integers(1, 70))
def test_the_length_of_the_windows_does_not_matter(model, expected, length):
    got = token_log_probs(model, EvaluationWindows(TOKENS, 0, length=length))
    np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.slow
@given(length=st.integers(1, 20), streams=st.integers(2, 9))
def test_streams_with_a_full_warm_up_are_one_stream(model, expected, length, streams):
    windows = EvaluationWindows(TOKENS, 0, streams=streams, length=length, warm_up=len(TOKENS))
    np.testing.assert_allclose(token_log_probs(model, windows), expected, rtol=1e-5)


def test_streams_without_a_warm_up_begin_anew(model, expected):
    got = token_log_probs(model, EvaluationWindows(TOKENS, 0, streams=3))
    np.testing.assert_allclose(got[:21], expected[:21], rtol=1e-5)
    assert not np.isclose(got[21], expected[21], rtol=1e-5)


@pytest.mark.parametrize("skip_first", [False, True])
def test_evaluate_sums_what_is_counted(model, expected, skip_first):
    calls = []
    windows = EvaluationWindows(TOKENS, 0, length=20, skip_first=skip_first)
    score = evaluate(model, windows, lambda *progress: calls.append(progress))
    counted = expected[int(skip_first) :]
    assert score.count == len(counted)
    assert score.nll == pytest.approx(-counted.mean())
    assert score.perplexity == pytest.approx(math.exp(-counted.mean()))
    assert score.bits == pytest.approx(-counted.mean() / math.log(2))
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]
    by_token = score_of(token_log_probs(model, windows))
    assert (by_token.count, by_token.nll_sum) == (score.count, pytest.approx(score.nll_sum))


def test_evaluation_leaves_the_model_as_it_was():
    model = networks.model(between_dropout=0.5, weight_drop=0.5).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    windows = EvaluationWindows(TOKENS, 0)
    assert evaluate(model, windows) == evaluate(model, windows)
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_perplexity_of_a_diverged_model_is_a_number():
    assert math.isfinite(Score(1e9, 1).perplexity)


def test_average_of_probabilities():
    a, b = np.array([0.5, 0.1, 1.0]), np.array([0.25, 0.3, 0.0])
    with np.errstate(divide="ignore"):
        logs = [np.log(a), np.log(b)]
    np.testing.assert_allclose(np.exp(average_probabilities(logs)), (a + b) / 2)
    np.testing.assert_allclose(np.exp(average_probabilities(logs, [3, 1])), 0.75 * a + 0.25 * b)
    np.testing.assert_allclose(np.exp(average_probabilities(logs, [0, 1])), b)


def test_the_share_of_symbols_is_that_of_the_distribution(model, expected):
    own, space = token_and_space_log_probs(model, EvaluationWindows(TOKENS, 0, length=20), [1, 3])
    np.testing.assert_allclose(own, expected, rtol=1e-5)
    either = [token_log_probs(model, _all(symbol)) for symbol in (1, 3)]
    np.testing.assert_allclose(space, np.logaddexp(*either), rtol=1e-5)


def _all(symbol):
    """Windows in which the text is read, and one symbol is predicted at every place."""
    return EvaluationWindows(np.full_like(TOKENS, symbol), 0, inputs=TOKENS)


def test_nothing_that_is_counted_has_no_figures():
    with pytest.raises(UserError, match="nothing of the test split is counted"):
        Score(0.0, 0).result("test")
