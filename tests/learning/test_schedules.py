"""Learning-rate schedules, as functions of where training is."""

import math
import random

import pytest

from elman import config
from elman.config.toml import find
from elman.learning.progress import rate


def rates(schedule, epochs, history=(), lr=1.0):
    return [rate(schedule, lr, epoch, epochs, history) for epoch in range(epochs)]


def test_the_constant_schedule_keeps_the_rate():
    assert rates(config.Constant(), 4, lr=30.0) == [30.0] * 4


@pytest.mark.parametrize(("after", "factor"), [(6, 1.2), (14, 1.15), (10, 1.1), (1, 2.0)])
def test_the_decay_schedule_divides_after_its_epochs(after, factor):
    """The full rate for `after` epochs, then divided once more each epoch, and constant within one."""
    schedule = config.Decay(after=after, factor=factor)
    got = rates(schedule, after + 4)
    assert got[:after] == [1.0] * after
    assert got[after:] == pytest.approx([factor**-k for k in (1, 2, 3, 4)])
    within = [rate(schedule, 1.0, after + part, 99, []) for part in (0.0, 0.5, 0.99)]
    assert within == pytest.approx([1 / factor] * 3)


def test_the_steps_schedule_divides_at_its_epochs():
    """Character-level AWD-LSTM divides by 10 at epochs 300 and 400."""
    schedule = config.Steps(epochs=(300, 400))
    got = [rate(schedule, 0.002, epoch, 500, []) for epoch in (0, 299.9, 300, 399.9, 400, 499)]
    assert got == pytest.approx([2e-3, 2e-3, 2e-4, 2e-4, 2e-5, 2e-5])


@pytest.mark.parametrize(
    ("perplexities", "divisions"),
    [
        ([], 0),
        ([100, 90, 80], 0),
        ([100, 100], 0),
        ([100, 100, 100], 1),
        ([100, 100, 90, 90, 90], 1),
        ([100, 101, 102, 103, 104], 2),
        ([100, 110, 99, 110, 98], 0),
    ],
)
def test_plateau_counts_epochs_without_improvement(perplexities, divisions):
    history = [math.log(value) for value in perplexities]
    assert rate(config.Plateau(factor=2.0, patience=2), 1.0, 0, 9, history) == 0.5**divisions


def test_plateau_threshold_is_in_perplexity():
    """The character-aware model halves when the perplexity falls by less than 1."""
    schedule = config.Plateau(factor=2.0, threshold=1.0)
    history = [math.log(value) for value in (100.0, 98.0, 97.5, 96.0, 95.5)]
    assert [rate(schedule, 1.0, 0, 9, history[:k]) for k in range(6)] == [1, 1, 1, 0.5, 0.5, 0.25]


def test_plateau_may_compare_with_the_epoch_before():
    """Against the best (80), neither 90 nor 85 is better; against the epoch before, 85 is."""
    history = [math.log(value) for value in (100.0, 80.0, 90.0, 85.0, 85.5)]

    def rates_after_each(**keys):
        schedule = config.Plateau(factor=2.0, threshold=1.0, **keys)
        return [rate(schedule, 1.0, 0, 9, history[:k]) for k in range(6)]

    assert rates_after_each() == [1, 1, 1, 0.5, 0.25, 0.125]
    assert rates_after_each(against="previous") == [1, 1, 1, 0.5, 0.5, 0.25]


def test_plateau_keeps_the_full_rate_for_its_first_epochs():
    """The history is followed from the beginning; only the divisions begin later."""
    history = [math.log(value) for value in (100.0, 100.5, 99.8, 99.6, 98.5)]
    for against, after, expected in (
        ("previous", 0, [1, 1, 0.5, 0.25, 0.125, 0.125]),
        ("previous", 3, [1, 1, 1, 0.5, 0.25, 0.25]),
        ("best", 3, [1, 1, 1, 0.5, 0.25, 0.25]),
        ("best", 5, [1, 1, 1, 1, 1, 1]),
    ):
        schedule = config.Plateau(factor=2.0, threshold=1.0, against=against, after=after)
        assert [rate(schedule, 1.0, 0, 9, history[:k]) for k in range(6)] == expected


def test_the_rate_of_a_very_long_run_is_0_or_the_least():
    """Divisors of 2^1024, 10^309 and more are not floating-point numbers."""
    long = 5000
    decay = config.Decay(after=1, factor=2.0)
    assert [rate(decay, 1.0, epoch, long, []) > 0 for epoch in (1000, 1023, 1024, 4999)] == [True, False, False, False]
    steps = config.Steps(epochs=tuple(range(1, 400)))
    assert [rate(steps, 1.0, epoch, long, []) > 0 for epoch in (300, 309, 399)] == [True, False, False]
    for min_lr in (0.0, 1e-4):
        plateau = config.Plateau(factor=10.0, min_lr=min_lr)
        assert [rate(plateau, 1.0, 0, long, [5.0] * count) for count in (330, 4999)] == [min_lr] * 2


def published_rates_of_kim(perplexities):
    """The rule of the published code: after each epoch from the third on, halve unless the last one gained 1."""
    lr, seen, rates = 1.0, [], [1.0]
    for value in perplexities:
        seen.append(value)
        if len(seen) > 2 and seen[-2] - seen[-1] < 1:
            lr *= 0.5
        rates.append(lr)
    return rates


@pytest.mark.parametrize("name", ["char-small", "char-large", "char-small-word-twin", "char-large-word-twin"])
def test_character_aware_recipes_have_the_rates_of_the_published_code(name):
    schedule = config.load_recipe(find(f"ptb/{name}.toml")).training.schedule
    draw, differing = random.Random(0), 0
    for _ in range(50):
        perplexities = [80 + 200 * 0.6**epoch + draw.gauss(0, 1.5) for epoch in range(12)]
        history = [math.log(value) for value in perplexities]
        ours = [rate(schedule, 1.0, 0, 25, history[:k]) for k in range(13)]
        assert ours == published_rates_of_kim(perplexities)
        best = config.Plateau(factor=2.0, threshold=1.0)
        differing += ours != [rate(best, 1.0, 0, 25, history[:k]) for k in range(13)]
    assert differing, "the two rules agree on every sequence"


def test_plateau_stops_at_its_least_rate():
    schedule = config.Plateau(factor=10.0, min_lr=1e-4)
    assert rate(schedule, 1.0, 0, 99, [1.0] * 50) == 1e-4


def test_plateau_survives_a_diverged_validation():
    assert rate(config.Plateau(factor=2.0), 1.0, 0, 9, [1e9, 2.0, math.inf, 1.0]) == 0.5**1


def test_cosine_rises_then_falls():
    schedule = config.Cosine(warm_up=2.0, floor=0.1)
    at = [rate(schedule, 3.0, epoch, 10, []) for epoch in (0, 1, 2, 6, 10, 12)]
    assert at == pytest.approx([0, 1.5, 3, 3 * (0.1 + 0.9 / 2), 0.3, 0.3])
    falling = [rate(schedule, 3.0, 2 + 0.1 * k, 10, []) for k in range(81)]
    assert falling == sorted(falling, reverse=True)


def test_cosine_without_warm_up_begins_at_the_rate():
    assert rate(config.Cosine(), 0.5, 0.0, 3, []) == 0.5
    assert rate(config.Cosine(), 0.5, 3.0, 3, []) == pytest.approx(0.0)
