"""The functions of the package: train, load, evaluate, generate, score."""

import numpy as np
import pytest

import elman
from elman import config
from elman.tasks.text.run import TextRun
from support import text_runs


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interface")
    (folder / "recipe.toml").write_text(config.dump_recipe(text_runs.recipe()))
    data = text_runs.write_corpus(folder / "corpus")
    return elman.train(folder / "recipe.toml", folder / "run", data=data, settings=["training.epochs=1"])


def test_training_gives_the_run_and_its_results(trained):
    assert isinstance(trained.run, TextRun)
    assert trained.run.recipe.training.epochs == 1
    assert [row.split for row in trained.results] == ["valid", "test"]
    assert isinstance(elman.load(trained.run.path), elman.Run)


def test_evaluation_agrees_with_training(trained):
    for row in trained.results:
        assert elman.evaluate(trained.run, row.split).perplexity == row.perplexity
    first = elman.evaluate(trained.run.path, "test", options=elman.EvaluationOptions(skip_first=True))
    assert first.tokens == trained.results[1].tokens - 1
    with pytest.raises(elman.UserError, match="--beam does not belong to a run on text"):
        elman.evaluate(trained.run, options=elman.EvaluationOptions(beam=3))


def test_generate_gives_the_text_of_its_seed(trained):
    made = elman.generate(trained.run, "w1 w2", count=5, seed=1)
    assert len(made.tokens) == 5
    assert made == elman.generate(str(trained.run.path), "w1 w2", count=5, seed=1)


def test_score_gives_log_probabilities_of_every_token(trained):
    (one, two) = elman.score(trained.run, ["w1 w2 w3", "w4"])
    assert one.tokens == ["w1", "w2", "w3", "<eos>"]
    assert len(two.log_probs) == 2
    assert np.all(one.log_probs < 0)
    assert config.Recipe is elman.Recipe
