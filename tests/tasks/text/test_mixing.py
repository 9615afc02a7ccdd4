"""Scores that are mixed, and their weights."""

import itertools
import random
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from elman.data.hypotheses import Hypothesis
from elman.evaluation.measures import edit_distance
from elman.tasks.text.ensemble import ensemble_result
from elman.tasks.text.rescoring import Grid, Mix, Trial, ranked

WORDS = ("a", "b", "c")


def random_lists(seed, scores=2):
    draw = random.Random(seed)
    texts = [" ".join(draw.choices(WORDS, k=draw.randrange(5))) for _ in range(40)]
    hypotheses = [
        Hypothesis(f"u{draw.randrange(8)}", tuple(float(draw.randrange(-4, 1)) for _ in range(scores)), text)
        for text in texts
    ]
    references = {one.utterance: " ".join(draw.choices(WORDS, k=3)) for one in hypotheses}
    return hypotheses, [float(draw.randrange(-6, 1)) for _ in hypotheses], references


def plain_rate(hypotheses, log_probs, references, mix):
    """By the ranking that is printed."""
    best = {name: hypotheses[order[0]].text for name, order in ranked(hypotheses, log_probs, mix)}
    errors = sum(edit_distance(text.split(), references[name].split()) for name, text in best.items())
    return errors / sum(len(references[name].split()) for name in best)


@pytest.mark.parametrize("seed", range(4))
def test_the_rate_is_that_of_what_is_printed(seed):
    lists = random_lists(seed)
    for weight, penalty, given in itertools.product((0.0, 0.5, 3.0), (0.0, -0.5), (None, (1.0, 0.25))):
        mix = Mix(weight=weight, word_penalty=penalty, given_weights=given)
        assert Trial(*lists).error_rate(mix) == pytest.approx(plain_rate(*lists, mix))


@pytest.mark.parametrize("seed", range(4))
def test_tuning_finds_the_best_of_the_grid(seed):
    lists, grid = random_lists(seed, scores=1), Grid(weights=(0.0, 0.5, 1.0), penalties=(0.0, 1.0))
    every = [Mix(weight=w, word_penalty=p) for w, p in itertools.product(grid.weights, grid.penalties)]
    rates = [plain_rate(*lists, mix) for mix in every]
    mix, rate = Trial(*lists).tuned(Mix(given_weights=(1.0,)), grid)
    assert rate == pytest.approx(min(rates))
    assert mix.weight == every[rates.index(min(rates))].weight
    assert mix.given_weights == (1.0,)


def test_the_words_of_a_reference_without_hypothesis_are_deleted():
    hypotheses = [Hypothesis("u", (0.0,), "a b"), Hypothesis("u", (-1.0,), "a c")]
    trial = Trial(hypotheses, [-9.0, 0.0], {"u": "a c", "v": "a b c", "w": ""})
    assert (trial.without_hypothesis, trial.deleted) == (["v", "w"], 3)
    assert trial.error_rate(Mix(weight=0.0)) == 4 / 5
    assert trial.tuned(Mix(), Grid())[1] == 3 / 5


def test_a_score_that_misleads_loses_its_weight():
    """The second given score prefers what is wrong, so much that no weight of the model's mends it."""
    hypotheses = [Hypothesis("u", (0.0, -9.0), "a b"), Hypothesis("u", (0.0, 0.0), "c c")]
    trial = Trial(hypotheses, [0.0, 0.0], {"u": "a b"})
    mix, rate = trial.tuned(Mix(), Grid(given=(0.0, -1.0)))
    assert rate == 0.0
    assert mix.given_weights == (1.0, 0.0)
    stays, rate = trial.tuned(Mix(), msgspec.structs.replace(Grid(), given=()))
    assert stays.given_weights is None
    assert rate == 1.0


def test_networks_beside_models_of_counts_are_a_member_together():
    log_probs = np.log([[0.5, 0.25], [0.25, 0.25], [0.125, 0.5]])
    split = SimpleNamespace(
        name="test", characters=4, num_bytes=4, num_words=2, unseparated=0, unknown=0, tokens=[0, 1], lines=0
    )
    found = ensemble_result(["a", "b", "counts"], log_probs, [1, 1, 2], [{}, {}], split)
    assert found.run == "a + b + counts"
    assert [one.run for one in found.members] == ["a", "b", "a + b", "counts"]
    assert found.members[2].nll == pytest.approx(-np.log([0.375, 0.25]).mean())
