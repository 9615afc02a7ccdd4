"""Ratios judged by token: nats by block, and the same test as `elman compare`."""

import math

import numpy as np
import pytest

from elman.config.toml import dump_recipe, find, load_recipe
from elman.evaluation import statistics
from elman.study.claim import Measurement
from elman.study.comparison import Bound, Ratio, lower, no_higher
from elman.study.measures import NATS, PERPLEXITY, TOKENS, by_block, compare, measured, run_by_block, with_tokens
from elman.study.runs import Machine, train
from elman.study.store import Store
from elman.tasks.evaluating import EvaluationOptions
from elman.tasks.text.run import TextRun

LOWER = lower("test perplexity", "a", "b")


def log_probs(seed, n=6000, shift=0.0):
    """Those of one text under a model: tokens differ much, models little."""
    text = np.random.default_rng(0).gamma(4.0, size=n)
    return (-text + shift + np.random.default_rng(seed).normal(0, 0.3, size=n)).astype(np.float32)


def test_blocks_hold_every_token_but_those_that_are_skipped():
    values = log_probs(1, n=1050)
    values[0] = np.nan
    found = by_block(values, block=10)
    assert found.figures == {TOKENS: 1049.0}
    assert len(found.curves[NATS]) == 104
    assert sum(found.curves[NATS]) == pytest.approx(-float(np.nansum(values.astype(np.float64))))


def test_one_seed_is_compared_as_by_elman_compare():
    a, b = log_probs(1), log_probs(2, shift=-0.01)
    found = compare(LOWER, [by_block(a, 100)], [by_block(b, 100)])
    theirs = statistics.compare(a, b)
    assert (found.tokens, found.blocks) == (6000, 60)
    assert found.judgement.mean == pytest.approx(theirs.difference)
    assert (found.judgement.low, found.judgement.high) == pytest.approx((theirs.low, theirs.high))
    assert found.judgement.p_value == pytest.approx(theirs.p_value)


def test_blocks_of_unequal_length_count_tokens():
    a, b = log_probs(1, n=6010), log_probs(2, n=6010, shift=-0.01)
    found = compare(LOWER, [by_block(a, 100)], [by_block(b, 100)])
    assert found.judgement.mean == pytest.approx(statistics.compare(a, b).difference, rel=1e-2)


def test_arms_are_the_means_of_their_seeds():
    a, b = [log_probs(seed) for seed in (1, 2)], [log_probs(seed, shift=-0.05) for seed in (3, 4)]
    found = compare(LOWER, [by_block(each, 100) for each in a], [by_block(each, 100) for each in b])
    means = [np.mean(each, axis=0, dtype=np.float64) for each in (a, b)]
    assert found.judgement.p_value == pytest.approx(statistics.compare(*means).p_value)
    assert found.judgement.answer == "holds"


def test_the_bounds_of_the_ratio_are_those_of_the_comparison():
    a, b = [by_block(log_probs(1, shift=-0.05), 100)], [by_block(log_probs(2), 100)]
    assert compare(LOWER, a, b).judgement.answer == "does not hold"
    assert compare(no_higher("test perplexity", "a", "b", 0.1), a, b).judgement.answer == "holds"


def test_runs_without_nats_or_of_other_texts_are_not_compared():
    one, short = by_block(log_probs(1), 100), by_block(log_probs(1, n=5000), 100)
    diverged = Measurement({"test perplexity": math.inf}, {})
    assert compare(LOWER, [one], [short]) is None
    assert compare(LOWER, [one], [one, diverged]) is None
    assert compare(LOWER, [diverged], [diverged]) is None


def test_verdicts_gain_the_test_in_words():
    arms = {
        name: [Measurement({"test perplexity": value, "other": value}, {}) for value in values]
        for name, values in (("a", (9.0, 9.1)), ("b", (10.0, 10.4)))
    }
    for index, each in enumerate(arms.values()):
        for one in each:
            found = by_block(log_probs(index, shift=-0.1 * index), 100)
            one.figures.update(found.figures)
            one.curves.update(found.curves)
    figures = {name: [one.figures for one in each] for name, each in arms.items()}
    plain = LOWER.verdict(figures)
    found = with_tokens(plain, LOWER, arms)
    assert found.answer == plain.answer, "the verdict stays by seed"
    assert found.figures.startswith(plain.figures + "; by token (6,000 in 60 blocks): ratio 0.9")
    assert found.by_token.judgement.answer == "holds"
    others = (Bound("test perplexity", "a", 9.5), Ratio("", "other", "a", "b"))
    crossed = Ratio("", "test perplexity", "a", "b", b_metric="other")
    for other in (*others, crossed):
        assert with_tokens(other.verdict(figures), other, arms).by_token is None


@pytest.mark.slow
def test_the_blocks_of_a_run_are_its_perplexity(experiment, corpus, tmp_path):
    run = Store(tmp_path / "out", str(corpus)).place("one", experiment.arms[0].small.at(1))
    train(run, Machine(threads=1))
    found = measured(run, PERPLEXITY)
    expected = TextRun(run.folder).evaluate(EvaluationOptions(streams=10))
    assert found.figures[TOKENS] == expected.tokens
    assert sum(found.curves[NATS]) / expected.tokens == pytest.approx(expected.nll, rel=1e-5)
    assert found.figures["test perplexity"] == pytest.approx(expected.perplexity, rel=0.05), "of one stream"


def test_runs_on_neither_text_nor_pairs_have_no_blocks(tmp_path):
    recipe = load_recipe(find("music/nottingham-gru.toml"), [])
    (tmp_path / "recipe.toml").write_text(dump_recipe(recipe))
    assert run_by_block(tmp_path, 100, 10) == Measurement({}, {})
