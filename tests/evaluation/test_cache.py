import numpy as np
import pytest
import torch

from elman.config.inference import CacheRule
from elman.errors import UserError
from elman.evaluation.dynamic import NeuralCache
from reference import adaptation

LENGTH, SIZE, WORDS = 40, 3, 5


@pytest.fixture
def text():
    log_prob = torch.randn(LENGTH, WORDS, dtype=torch.float64).log_softmax(-1)
    hidden = torch.randn(LENGTH, SIZE, dtype=torch.float64)
    targets = torch.randint(WORDS, (LENGTH,))
    return log_prob.gather(1, targets[:, None]).squeeze(1), hidden, targets


def read(rule, text, sizes):
    cache = NeuralCache(rule)
    return torch.cat([cache.read(*part) for part in zip(*(tensor.split(sizes) for tensor in text), strict=True)])


@pytest.mark.parametrize("window", [1, 7, 16, 100])
@pytest.mark.parametrize("size", [1, 4, 7, 40])
def test_the_cache_is_the_papers_however_the_text_is_cut(text, window, size):
    rule = CacheRule(weight=0.2, theta=0.7, window=window)
    expected = adaptation.neural_cache(*(part.numpy() for part in text), 0.2, 0.7, window)
    np.testing.assert_allclose(read(rule, text, size).numpy(), expected, rtol=1e-12)


def test_no_position_sees_itself_or_a_later_one(text):
    log_prob, hidden, targets = text
    before = read(CacheRule(window=10), text, 8)
    at = 20
    hidden, targets = hidden.clone(), targets.clone()
    hidden[at + 1 :] = 9.0
    targets[at + 1 :] = 0
    after = read(CacheRule(window=10), (log_prob, hidden, targets), 8)
    assert torch.equal(before[: at + 1], after[: at + 1])


def test_weight_zero_is_the_model_alone(text):
    torch.testing.assert_close(read(CacheRule(weight=0.0), text, 8), text[0])


def test_the_mixture_is_a_distribution(text):
    _, hidden, targets = text
    model = torch.randn(WORDS, dtype=torch.float64).log_softmax(-1)
    total = 0.0
    for symbol in range(WORDS):
        cache = NeuralCache(CacheRule(weight=0.3))
        cache.read(torch.zeros(LENGTH - 1, dtype=torch.float64), hidden[:-1], targets[:-1])
        total += cache.read(model[[symbol]], hidden[-1:], torch.tensor([symbol])).exp().item()
    assert total == pytest.approx(1)


@pytest.mark.parametrize("wrong", [{"weight": 1.0}, {"weight": -0.1}, {"theta": -1.0}, {"window": 0}])
def test_cache_options_out_of_range_are_refused(wrong):
    with pytest.raises(UserError, match=f"--cache-{next(iter(wrong))} is"):
        CacheRule(**wrong).check()
