import copy

import numpy as np
import pytest
import torch

from elman.config.inference import CacheRule
from elman.data.windows import EvaluationWindows, TrainingWindows
from elman.errors import UserError
from elman.evaluation.dynamic import (
    DynamicModel,
    NeuralCache,
    Rule,
    adaptive_stream,
    gradient_statistics,
    kept_statistics,
    read_static,
    statistics_windows,
)
from elman.evaluation.perplexity import token_log_probs
from reference import adaptation
from support import networks
from support.pairwise import every_pair

WORDS = 7
TEXT = np.random.default_rng(0).integers(WORDS, size=43)
RMS = Rule(lr=1e-3, decay=0.5, eps=1e-3, segment=4)
SGD = Rule(kind="sgd", lr=0.3, decay=0.2, segment=4)


def statistics_of(model):
    return gradient_statistics(model, statistics_windows(np.random.default_rng(1).integers(WORDS, size=120)))


def dynamic(model, rule, statistics=None):
    if rule.kind == "rms" and statistics is None:
        statistics = statistics_of(model)
    return DynamicModel(model, rule, statistics)


def log_probs(model, rule, text=TEXT, cache=None, statistics=None):
    read = dynamic(model, rule, statistics).read
    windows = EvaluationWindows(text, 0, length=rule.segment)
    return torch.cat([part for part, _ in adaptive_stream(read, model, windows, cache)]).numpy()


def gradients_of(model, inputs, targets, state):
    """By the plain log-probabilities, not by the fused kernels."""
    log_prob, _ = model.log_prob(inputs, targets, state)
    parameters = list(model.parameters())
    return [gradient.numpy() for gradient in torch.autograd.grad(-log_prob.mean(), parameters)]


@pytest.mark.parametrize("rule", [RMS, SGD, Rule(lr=1e-3, decay=20.0, eps=1e-3, segment=4)])
@pytest.mark.parametrize("segment", [5, 3])
def test_two_updates_as_in_the_paper(rule, segment):
    model = networks.model(tied=True)
    learner, plain = dynamic(model, rule), copy.deepcopy(model)
    trained = [parameter.detach().numpy().copy() for parameter in model.parameters()]
    squares = [value.numpy() ** 2 for value in statistics_of(model).values()]
    weights, state, share = trained, model.begin(1), segment / 5
    for start in (0, segment):
        inputs, targets = (torch.tensor(TEXT[at : at + segment])[:, None] for at in (start, start + 1))
        gradients = gradients_of(plain, inputs, targets, state)
        if rule.kind == "rms":
            more = (squares, 1, share * rule.lr, share * rule.decay, rule.eps)
            weights = adaptation.rms_update(weights, trained, gradients, *more)
        else:
            weights = adaptation.sgd_update(weights, trained, gradients, share * rule.lr, share * rule.decay)
        state = learner.read(inputs, targets, state).state
        for now, expected, mine in zip(learner.model.parameters(), weights, plain.parameters(), strict=True):
            np.testing.assert_allclose(now.detach().numpy(), expected, rtol=1e-9, atol=1e-12)
            mine.data = torch.tensor(expected)


def test_statistics_are_the_mean_squares_of_the_segments_gradients():
    model, windows = networks.model(), TrainingWindows(np.random.default_rng(1).integers(WORDS, size=61), 4, 5)
    assert len(windows.spans(0)) == 3, "a mean and a sum must differ"
    state, squares = model.begin(4), 0
    for span in windows.spans(0):
        batch = windows.batch(span)
        squares = squares + np.array(
            [(gradient**2).sum() for gradient in gradients_of(model, batch.inputs, batch.targets, state)]
        )
        with torch.no_grad():
            state = model.log_prob(batch.inputs, batch.targets, state)[1]
    found = [value.square().sum().item() for value in gradient_statistics(model, windows).values()]
    np.testing.assert_allclose(found, squares / len(windows.spans(0)), rtol=1e-9)


@pytest.mark.slow
@every_pair(rule=[RMS, SGD], activation=["softmax", "sigsoftmax"], contexts=list(networks.CONTEXTS))
def test_every_output_learns_and_the_model_stays_bitwise(contexts, activation, rule):
    model = networks.model(contexts, activation, weight_drop=0.5, between_dropout=0.5).train()
    before = copy.deepcopy(model.state_dict())
    static = token_log_probs(model, EvaluationWindows(TEXT, 0))
    adapted = log_probs(model, rule)
    np.testing.assert_allclose(adapted[:4], static[:4], rtol=1e-6)
    assert np.abs(adapted[4:] - static[4:]).min() > 1e-7
    assert model.training
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.slow
def test_learning_helps_on_a_text_that_repeats_itself():
    text = np.tile([1, 2, 3, 4, 5], 100)
    model = networks.model()
    adapted = log_probs(model, Rule(kind="sgd", lr=0.5, decay=0.0), text)
    assert adapted[-50:].mean() > token_log_probs(model, EvaluationWindows(text, 0)).mean() + 1


@pytest.mark.slow
@pytest.mark.parametrize("cache", [None, CacheRule(window=9)])
@pytest.mark.parametrize("at", [0, 3, 4, 17, 42])
def test_no_token_is_scored_by_a_model_that_has_seen_it(at, cache):
    """Another symbol at a position changes nothing before it, and at it only which symbol is asked for."""
    model = networks.model()
    read, statistics = TEXT[: at + 5], statistics_of(model)
    other = read.copy()
    other[at] = (other[at] + 1) % WORDS

    def scored(text):
        return log_probs(model, RMS, text, None if cache is None else NeuralCache(cache), statistics)

    np.testing.assert_array_equal(scored(read)[:at], scored(other)[:at])
    each = []
    for symbol in range(WORDS):
        text = read.copy()
        text[at] = symbol
        each.append(scored(text)[at])
    assert np.exp(each).sum() == pytest.approx(1)


def test_a_rate_of_zero_is_static_evaluation():
    model = networks.model()
    static = token_log_probs(model, EvaluationWindows(TEXT, 0))
    np.testing.assert_allclose(log_probs(model, Rule(lr=0.0, segment=3)), static, rtol=1e-6)


def test_the_hidden_states_are_the_last_level():
    model = networks.model()
    inputs = torch.tensor(TEXT[:5])[:, None]
    reading = read_static(model.eval(), inputs, inputs, model.begin(1))
    torch.testing.assert_close(reading.hidden, model.trace(inputs, model.begin(1))[0].top)


def test_statistics_are_kept_for_the_same_facts(tmp_path):
    model, path = networks.model().float(), tmp_path / "statistics.safetensors"
    computed = []

    def compute():
        computed.append(1)
        return statistics_of(model)

    cpu = torch.device("cpu")
    first = kept_statistics(path, {"model": "a"}, compute, cpu)
    again = kept_statistics(path, {"model": "a"}, compute, cpu)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert len(computed) == 1
    kept_statistics(path, {"model": "b"}, compute, cpu)
    path.write_bytes(path.read_bytes()[:-9])
    kept_statistics(path, {"model": "b"}, compute, cpu)
    assert len(computed) == 3


@pytest.mark.parametrize(
    "wrong",
    [{"lr": -1.0}, {"lr": float("nan")}, {"decay": -0.1}, {"decay": 1.5, "kind": "sgd"}, {"eps": 0.0}, {"segment": 0}],
)
def test_rules_out_of_range_are_refused(wrong):
    with pytest.raises(UserError, match=f"--{next(iter(wrong))} is"):
        Rule(**wrong).check()


def test_statistics_read_a_short_text_in_as_many_columns_as_it_fills():
    for tokens, columns in ((6, 1), (11, 1), (12, 2), (90, 15), (600, 100), (6000, 100)):
        assert statistics_windows(np.arange(tokens)).columns.shape == (columns, tokens // columns)
    with pytest.raises(UserError, match="need 6 tokens of the training text, and 5 are read"):
        statistics_windows(np.arange(5))
