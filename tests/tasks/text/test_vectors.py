"""Vectors of words that stand together, against counts by hand and an exact factorisation."""

import math

import msgspec
import numpy as np
import pytest
import torch

from elman import config
from elman.config.toml import FOLDER, load_recipe
from elman.errors import UserError
from elman.kinds.pairs.task import PairTask
from elman.network.build import build_model
from elman.tasks.experiment import Experiment
from elman.tasks.text import vectors
from elman.tasks.text.run import TextRun
from support import text_runs

RECORD = config.Cooccurrence()

WORDS = 9


def text(length=400):
    generator = np.random.default_rng(0)
    return np.minimum(generator.geometric(0.35, length) - 1, WORDS - 2).astype(np.uint32)


def model_of(size):
    return config.Model(encoder=config.Lookup(size=size, cooccurrence=RECORD), core=config.Stack(sizes=(3,)))


def counted(tokens, window):
    """Pairs at most `window` tokens apart, one by one."""
    counts = np.zeros((WORDS, WORDS))
    for at, word in enumerate(tokens):
        for distance in range(1, window + 1):
            if at + distance < len(tokens):
                counts[word, tokens[at + distance]] += 1 / distance
                counts[tokens[at + distance], word] += 1 / distance
    return counts


def information(counts):
    smoothed = counts.sum(1) ** 0.75
    found = np.zeros_like(counts)
    for i, j in np.argwhere(counts > 0):
        found[i, j] = max(0.0, math.log(counts[i, j] * smoothed.sum() / (counts[i].sum() * smoothed[j])))
    return found


@pytest.mark.parametrize("window", [1, 3])
def test_the_matrix_is_the_positive_information_of_pairs(window):
    found = vectors.mutual_information(text(), WORDS, window).to_dense()
    np.testing.assert_allclose(found.numpy(), information(counted(text(), window)), rtol=1e-4, atol=1e-5)


def test_a_text_shorter_than_the_window_has_the_pairs_there_are():
    found = vectors.mutual_information(np.array([0, 1]), WORDS, 5).to_dense()
    np.testing.assert_allclose(found.numpy(), information(counted([0, 1], 1)), rtol=1e-5)


@pytest.mark.parametrize("size", [3, WORDS, 20])
def test_vectors_are_the_first_directions_by_the_roots_of_their_values(size):
    torch.manual_seed(0)
    found = vectors.vectors(text(), WORDS, size, config.Cooccurrence(window=2, std=0.5)).double()
    directions, values, _ = np.linalg.svd(information(counted(text(), 2)))
    expected = directions[:, :size] * np.sqrt(values[:size])
    expected *= 0.5 / np.sqrt(np.mean(expected**2))
    assert found.shape == (WORDS, min(size, WORDS))
    assert found.square().mean().sqrt().item() == pytest.approx(0.5)
    # Directions have no sign, so that products of vectors are compared.
    np.testing.assert_allclose(found @ found.t(), expected @ expected.T, atol=1e-3)


def test_words_without_pairs_and_numbers_beyond_the_words_stay_random():
    recipe = model_of(20)
    torch.manual_seed(0)
    model = build_model(recipe, WORDS)
    before = model.encoder.weight.detach().clone()
    vectors.begin_with_cooccurrence(recipe.encoder.cooccurrence, model, text())
    after = model.encoder.weight.detach()
    assert torch.equal(after[:, WORDS:], before[:, WORDS:])
    assert torch.equal(after[WORDS - 1], before[WORDS - 1])
    assert (after[: WORDS - 1, :WORDS] != before[: WORDS - 1, :WORDS]).any(dim=1).all()


def test_without_pairs_there_is_nothing_to_begin_with():
    recipe = model_of(4)
    with pytest.raises(UserError, match="cooccurrence"):
        vectors.begin_with_cooccurrence(recipe.encoder.cooccurrence, build_model(recipe, WORDS), text(1))


def test_only_the_beginning_of_a_long_text_is_counted(monkeypatch, capsys):
    monkeypatch.setattr(vectors, "MOST", 50)
    vectors.begin_with_cooccurrence(RECORD, build_model(model_of(4), WORDS), text())
    assert "the first 50 of 400 tokens are counted" in capsys.readouterr().err
    found = vectors.mutual_information(text(), WORDS, 2)
    np.testing.assert_allclose(found.to_dense().numpy(), information(counted(text()[:50], 2)), rtol=1e-4, atol=1e-5)


def test_a_new_run_begins_with_them_and_no_other(tmp_path):
    recipe = text_runs.recipe(epochs=1)
    recipe = msgspec.structs.replace(
        recipe, model=msgspec.structs.replace(recipe.model, encoder=config.Lookup(size=8, cooccurrence=RECORD))
    )
    corpus = text_runs.write_corpus(tmp_path / "text", {"train": 60, "valid": 10, "test": 10})
    first = Experiment(recipe, tmp_path / "first", data=corpus)
    train = first.task.corpus.split("train").tokens
    torch.manual_seed(recipe.seed)
    model = first.task.build()
    vectors.begin_with_cooccurrence(RECORD, model, train)
    assert torch.equal(first.model.encoder.weight, model.encoder.weight)
    first.train()
    started = Experiment(recipe, tmp_path / "started", data=corpus, init=tmp_path / "first")
    assert torch.equal(started.model.encoder.weight, TextRun(tmp_path / "first").model.encoder.weight)


def test_other_tasks_refuse_them(tmp_path):
    task = object.__new__(PairTask)
    task.recipe = load_recipe(FOLDER / "translation/small-en-ja.toml", ["model.encoder.cooccurrence.window=2"])
    with pytest.raises(UserError, match="is for text, not for pairs"):
        task.begin(None)
