"""Predictions: probability, rank and entropy of every position, whatever the output layer and the batch."""

import itertools

import numpy as np
import pytest
import torch

from elman.evaluation import scoring
from elman.evaluation.adaptive_stream import AdaptiveStream
from elman.evaluation.dynamic import Rule
from elman.evaluation.scoring import predict_document, predict_sentences, score_document, score_sentences
from support import networks

WORDS = 7
DRAW = np.random.default_rng(0)
SENTENCES = [DRAW.integers(0, WORDS, length) for length in (5, 1, 9, 3, 3)]


def built(name):
    return (networks.model(name) if name in networks.CONTEXTS else networks.choice_model(name)).eval()


@pytest.mark.parametrize("name", [*networks.CONTEXTS, *networks.CHOICES])
def test_ranks_and_entropies_are_those_of_the_distribution(name, monkeypatch):
    monkeypatch.setattr(scoring, "LARGEST", 20)
    model = built(name)
    (got,) = predict_document(model, [SENTENCES[0]], 0)
    inputs = torch.tensor([0, *SENTENCES[0]])[:, None]
    with torch.inference_mode():
        log_probs = model.log_probs(inputs, model.begin(1))[0][:, 0].numpy()
    ordered = np.argsort(-log_probs[:-1], axis=1, kind="stable").tolist()
    np.testing.assert_allclose(got.entropy, -(np.exp(log_probs) * log_probs).sum(1), rtol=1e-5)
    np.testing.assert_allclose(got.log_prob, log_probs[range(5), SENTENCES[0]], rtol=1e-5)
    assert [row.index(word) + 1 for row, word in zip(ordered, SENTENCES[0], strict=True)] == got.rank.tolist()


def test_ties_have_the_smallest_rank():
    model = built("single")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    (got,) = predict_document(model, [SENTENCES[0]], 0)
    assert got.rank.tolist() == [1] * 5
    np.testing.assert_allclose(got.entropy, np.log(WORDS), rtol=1e-6)


@pytest.mark.parametrize("name", ["doc", "adaptive"])
def test_scores_agree_with_those_without_ranks(name):
    model = built(name)
    pairs = (
        (predict_sentences(model, SENTENCES, 0, batch_size=2), score_sentences(model, SENTENCES, 0)),
        (predict_document(model, SENTENCES, 0), score_document(model, SENTENCES, 0)),
    )
    for predictions, scores in pairs:
        for one, expected in zip(predictions, scores, strict=True):
            np.testing.assert_allclose(one.log_prob, expected, rtol=1e-5)
            assert len(one.entropy) == len(one.rank) + 1


def test_in_a_document_the_last_entropy_is_the_next_ones_first():
    predictions = list(predict_document(built("single"), SENTENCES, 0))
    for one, after in itertools.pairwise(predictions):
        assert one.entropy[-1] == pytest.approx(after.entropy[0], rel=1e-6)


@pytest.mark.parametrize("name", ["single", "mos", "tree"])
def test_a_model_that_adapts_predicts_what_it_scores(name):
    model, rule = built(name), Rule(kind="sgd", lr=0.3, decay=0.0, segment=4)
    plain = list(AdaptiveStream(model, rule, None, first=0).score_all(SENTENCES))
    predictions = list(AdaptiveStream(model, rule, None, first=0).predict_all(SENTENCES))
    for one, expected in zip(predictions, plain, strict=True):
        np.testing.assert_allclose(one.log_prob, expected, rtol=1e-5)
    for one, after in itertools.pairwise(predictions):
        assert one.entropy[-1] == pytest.approx(after.entropy[0], rel=1e-6)
