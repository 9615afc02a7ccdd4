"""Baselines of texts count the tokens that the network's evaluation counts."""

import msgspec
import numpy as np
import pytest

from elman import config
from elman.tasks.experiment import Experiment
from elman.tasks.open import open_task
from elman.tasks.text.ensemble import member_log_probs, own_counts
from elman.tasks.text.run import TextRun
from support import text_runs


@pytest.mark.parametrize("skip", [False, True])
def test_baselines_count_what_the_recipe_counts(tmp_path, skip):
    corpus = text_runs.write_corpus(tmp_path / "corpus")
    raw = msgspec.to_builtins(text_runs.recipe(), str_keys=True)
    raw["data"] = {"kind": "text", "tokenisation": "words", "evaluation": {"skip_first": skip}}
    rows = open_task(config.parse_recipe(raw, "toy"), str(corpus)).baselines(3, ["test"])
    assert [row.name for row in rows] == ["unigram", "Kneser-Ney 3-gram"]
    assert {row.tokens for row in rows} == {20 * 10 - skip}
    assert {row.words for row in rows} == {20 * 10 - skip}


@pytest.mark.parametrize(("tokenisation", "order"), [("words", 5), ("characters", 8), ("bytes", 8)])
def test_n_grams_are_longer_where_symbols_are_shorter(tmp_path, tokenisation, order):
    corpus = text_runs.write_corpus(tmp_path / "corpus")
    raw = msgspec.to_builtins(text_runs.recipe(), str_keys=True)
    raw["data"] = {"kind": "text", "tokenisation": tokenisation}
    rows = open_task(config.parse_recipe(raw, "toy"), str(corpus)).baselines(None, ["valid"])
    assert [row.name for row in rows] == ["unigram", f"Kneser-Ney {order}-gram"]


def test_n_grams_that_a_network_does_not_exceed_are_used_with_it(tmp_path):
    """Both are at least as good as each alone on the split that gives the weights, as `--mix` finds them."""
    corpus, out = text_runs.write_corpus(tmp_path / "corpus"), tmp_path / "run"
    experiment = Experiment(text_runs.recipe(epochs=1), out, data=str(corpus))
    experiment.train()
    results = experiment.finish()
    assert experiment.mixed(results, []) == []
    baselines = experiment.baselines(3)
    (valid, test) = experiment.mixed(results, baselines)
    assert [(row.split, row.name) for row in (valid, test)] == [
        ("valid", "with Kneser-Ney 3-gram"),
        ("test", valid.name),
    ]
    assert valid.nll <= min(row.nll for row in [*results, *baselines] if row.split == "valid") + 1e-3
    run = TextRun(out)
    weights = valid.settings["weights"]
    shares = member_log_probs([run], run.split(experiment.task.corpus, "test"), [own_counts(run, 3)])
    expected = -np.log(sum(w * np.exp(part) for w, part in zip(weights, shares, strict=True))).mean()
    assert test.nll == pytest.approx(expected, rel=2e-3)
    better = [msgspec.structs.replace(row, nll=0.01) for row in results]
    assert experiment.mixed(better, baselines) == []
