"""Perplexity, dynamic evaluation and the cache of parts: the values of `elman evaluate` on the same model."""

import copy

import numpy as np
import pytest
import torch

from elman import nn as enn
from elman.config.inference import CacheRule, Rule
from elman.data.windows import EvaluationWindows, TrainingWindows
from elman.evaluation import dynamic
from elman.evaluation.perplexity import evaluate
from support.words import Words, arrays_of, pair, text

TRAIN, TEST = text(700), text(83, seed=1)
LENGTHS = {"statistics": None, "first": 4}


@pytest.mark.parametrize("components", [0, 3])
@pytest.mark.parametrize(("columns", "length"), [(1, 70), (1, 9), (4, 6)])
def test_perplexity_is_that_of_evaluation(components, columns, length):
    known, made = pair(components=components)
    windows = EvaluationWindows(TEST.numpy(), 3, streams=columns, length=length)
    found = enn.perplexity(made, TEST, first=3, columns=columns, window=length)
    assert found == pytest.approx(evaluate(known, windows).perplexity, rel=1e-12)
    assert made.training, "the mode is as it was"
    windows = EvaluationWindows(TEST[1:].numpy(), int(TEST[0]))
    assert enn.perplexity(made, TEST) == pytest.approx(evaluate(known, windows).perplexity, rel=1e-12)


def adapted(known, rule, statistics, cache, segment):
    """The log-probabilities of elman's own commands, after the symbol 4."""
    windows = EvaluationWindows(TEST.numpy(), 4, length=segment)
    learner = None if rule is None else dynamic.DynamicModel(known, rule, statistics)
    read = (lambda *given: dynamic.read_static(known.eval(), *given)) if learner is None else learner.read
    stream = dynamic.adaptive_stream(read, known, windows, cache)
    return torch.cat([log_prob for log_prob, _ in stream])


@pytest.mark.parametrize("components", [0, 3])
@pytest.mark.parametrize("kind", ["rms", "sgd", "cache", "both"])
def test_adaptation_is_that_of_evaluation(kind, components):
    known, made = pair(components=components)
    before = copy.deepcopy(made.state_dict())
    statistics = dynamic.gradient_statistics(known, TrainingWindows(TRAIN.numpy(), 100, 5))
    mine = enn.gradient_statistics(made, TRAIN)
    names = {one: name for name, one in known.named_parameters()}
    torch.testing.assert_close(mine, {name: statistics[names[one]] for name, one in arrays_of(known).items()})
    cache = CacheRule(weight=0.3, theta=0.7, window=20)
    reader = enn.NeuralCache(made, weight=0.3, theta=0.7, window=20)
    if kind == "rms":
        expected = adapted(known, Rule(lr=2e-3, decay=0.01, segment=4), statistics, None, 4)
        reader = enn.DynamicEvaluation(made, mine, lr=2e-3, decay=0.01, segment=4)
    elif kind == "sgd":
        expected = adapted(known, Rule(kind="sgd", lr=0.3, decay=0.1, segment=7), None, None, 7)
        reader = enn.DynamicEvaluation(made, lr=0.3, decay=0.1, segment=7)
    elif kind == "cache":
        expected = adapted(known, None, None, dynamic.NeuralCache(cache), 70)
    else:
        expected = adapted(known, Rule(segment=5), statistics, dynamic.NeuralCache(cache), 5)
        reader = enn.NeuralCache(enn.DynamicEvaluation(made, mine), weight=0.3, theta=0.7, window=20)
    found = reader.log_prob(TEST, first=4)
    torch.testing.assert_close(found, expected)
    static = enn.token_log_probs(made, TEST, first=4)
    assert (static - found).abs().max() > 1e-4, "it adapts"
    assert all(torch.equal(one, before[name]) for name, one in made.state_dict().items())


def test_a_text_may_come_in_pieces():
    _, made = pair()
    whole = enn.DynamicEvaluation(made, lr=0.3, segment=5).log_prob(TEST)
    assert whole[0].isnan()
    assert not whole[1:].isnan().any()
    reader = enn.DynamicEvaluation(made, lr=0.3, segment=5)
    pieces = torch.cat([reader.log_prob(TEST[:21]), reader.log_prob(TEST[21:])])
    torch.testing.assert_close(pieces, whole, equal_nan=True)
    assert enn.perplexity(reader, TEST.numpy()) > 1


def test_the_frozen_and_the_tied_adapt():
    torch.manual_seed(0)
    made = Words()
    made.output = enn.Softmax(6, 11, weight=made.encoder.weight)
    made.encoder.requires_grad_(False)
    reader = enn.DynamicEvaluation(made, lr=0.5)
    reader.log_prob(TEST)
    assert reader.model.output.weight is reader.model.encoder.weight
    assert not torch.equal(reader.model.encoder.weight, made.encoder.weight)
    assert made.encoder.weight.grad is None


def test_wrong_arguments_are_one_line():
    _, made = pair()
    with pytest.raises(ValueError, match=r"^lr is -1; it must be 0 or more"):
        enn.DynamicEvaluation(made, lr=-1)
    with pytest.raises(ValueError, match=r"^weight is 1; it must be 0 or more and below 1"):
        enn.NeuralCache(made, weight=1.0)
    with pytest.raises(ValueError, match="6 ids or more"):
        enn.gradient_statistics(made, TRAIN[:5])
    with pytest.raises(ValueError, match=r"have the shape \[3, 2\]"):
        enn.perplexity(made, torch.zeros(3, 2))
    with pytest.raises(ValueError, match="no token is scored"):
        enn.perplexity(made, [3])
    with pytest.raises(ValueError, match=r"LSTM.output is no output layer"):
        enn.perplexity(torch.nn.LSTM(3, 3), TEST)
    with pytest.raises(ValueError, match="leave columns out"):
        enn.perplexity(enn.NeuralCache(made), TEST, columns=2)
    assert np.isfinite(enn.perplexity(made, [3], first=2))


def test_dropout_is_off_and_the_mode_stays():
    made = Words(weight_drop=0.5, output_dropout=0.5, between_dropout=0.5)
    readers = (lambda: made, lambda: enn.NeuralCache(made), lambda: enn.DynamicEvaluation(made, lr=0.3))
    expected = [enn.perplexity(read(), TEST) for read in readers]
    assert made.training
    made.eval()
    assert [enn.perplexity(read(), TEST) for read in readers] == expected
    assert not made.training


@pytest.mark.parametrize("wrong", [{"columns": 0}, {"columns": -1}, {"window": 0}, {"window": -1}])
def test_columns_and_windows_are_one_or_more(wrong):
    with pytest.raises(ValueError, match="it must be 1 or more"):
        enn.perplexity(Words(), TEST, **wrong)
    with pytest.raises(TypeError):
        enn.perplexity(Words(), TEST, **dict.fromkeys(wrong, 1.5))


@pytest.mark.parametrize("dtype", [torch.bool, torch.complex64])
def test_ids_of_other_types(dtype):
    with pytest.raises(ValueError, match=r"ids are one sequence \[n\] of whole numbers, and not torch"):
        enn.perplexity(Words(), TEST.to(dtype))


def test_statistics_of_another_model_are_refused():
    """Those of other shapes might be repeated, in silence."""
    made = Words()
    right = enn.gradient_statistics(made, TRAIN)
    for wrong in ({"x": torch.ones(1)}, {name: one[..., :1] for name, one in right.items()}):
        with pytest.raises(ValueError, match="statistics are of another model"):
            enn.DynamicEvaluation(made, wrong)
