"""Scores of sentences: who stands beside a sentence does not matter, and a document is one stream."""

import numpy as np
import pytest
import torch

from elman.data.batches import stack_sequences
from elman.data.windows import EvaluationWindows
from elman.errors import Diverged
from elman.evaluation import scoring
from elman.evaluation.minimal_pairs import sentence_log_probs
from elman.evaluation.perplexity import token_log_probs
from elman.evaluation.scoring import predict_document, predict_sentences, score_document, score_sentences, surprisal
from support import networks

DRAW = np.random.default_rng(0)
SENTENCES = [DRAW.integers(0, 7, length) for length in (5, 1, 9, 3, 3, 12, 1)]


@pytest.fixture(scope="module", params=["single", "doc"])
def model(request):
    torch.manual_seed(0)
    return networks.model(request.param).eval()


@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 32])
def test_a_sentence_does_not_depend_on_its_batch(model, batch_size):
    for sentence, scores in zip(SENTENCES, score_sentences(model, SENTENCES, 0, batch_size), strict=True):
        alone = token_log_probs(model, EvaluationWindows(sentence, 0))
        np.testing.assert_allclose(scores, alone, rtol=1e-5)


def test_padding_does_not_change_a_probability(model):
    """Whatever the padding is."""
    batch, lengths = stack_sequences(SENTENCES, 0)
    expected, _ = model.log_prob(batch.inputs, batch.targets, model.begin(len(SENTENCES)))
    padding = ~batch.mask
    inputs, targets = (torch.where(padding, 6, part) for part in (batch.inputs, batch.targets))
    got, _ = model.log_prob(inputs, targets, model.begin(len(SENTENCES)))
    torch.testing.assert_close(got[batch.mask], expected[batch.mask])
    assert batch.mask.sum() == sum(lengths)


def test_scores_that_are_no_numbers_are_refused():
    """An empty cell of a table is a symbol that is left out."""
    broken = networks.model().eval()
    torch.nn.init.constant_(next(broken.core.parameters()), torch.nan)
    for ask in score_sentences, predict_sentences, score_document, predict_document:
        with pytest.raises(Diverged, match="are not numbers"):
            list(ask(broken, SENTENCES, 0))
    with pytest.raises(Diverged, match="are not numbers"):
        sentence_log_probs(broken, SENTENCES, 0)


def test_a_document_is_one_stream(model):
    scores = list(score_document(model, SENTENCES, 0))
    assert [len(part) for part in scores] == [len(sentence) for sentence in SENTENCES]
    stream = token_log_probs(model, EvaluationWindows(np.concatenate(SENTENCES), 0))
    np.testing.assert_allclose(np.concatenate(scores), stream, rtol=1e-5)


def test_a_document_goes_on_from_a_state(model):
    _, state = model.log_prob(torch.tensor([[3], [2]]), torch.tensor([[2], [0]]), model.begin(1))
    (carried,) = score_document(model, SENTENCES[:1], 0, state)
    (anew,) = score_document(model, SENTENCES[:1], 0)
    assert not np.allclose(carried, anew)


def test_what_is_read_may_differ_from_what_is_predicted(model):
    """The last symbol of a sentence, too, is read as an input where the next begins."""
    read = [np.where(sentence == 3, 5, sentence) for sentence in SENTENCES]
    assert any(one[-1] == 3 for one in SENTENCES[:-1])
    inputs, targets = np.concatenate([[0], *read])[:-1], np.concatenate(SENTENCES)
    with torch.inference_mode():
        columns = (torch.from_numpy(part).unsqueeze(1) for part in (inputs, targets))
        expected = model.log_prob(*columns, model.begin(1))[0][:, 0]
    scores = score_document(model, SENTENCES, 0, inputs=read)
    np.testing.assert_allclose(np.concatenate(list(scores)), expected, rtol=1e-5)
    predicted = [one.log_prob for one in predict_document(model, SENTENCES, 0, inputs=read)]
    np.testing.assert_allclose(np.concatenate(predicted), expected, rtol=1e-5)


def test_scoring_is_lazy_and_takes_any_iterable(model):
    """Sentences may come from a file without end."""

    def endless():
        while True:
            yield SENTENCES[0]

    for score in (score_sentences, score_document):
        assert len(next(score(model, endless(), 0))) == 5
    assert list(score_sentences(model, [], 0)) == []


def test_surprisal_is_in_bits():
    np.testing.assert_allclose(surprisal(np.log([0.5, 0.125, 1.0])), [1, 3, 0])


@pytest.mark.parametrize("batch_size", [1, 3])
def test_long_sentences_in_windows_score_as_at_once(model, batch_size, monkeypatch):
    sentences = [*SENTENCES, np.empty(0, dtype=np.int64)]
    expected = [list(score(model, SENTENCES, 0)) for score in (score_sentences, score_document)]
    predicted = [list(predict(model, SENTENCES, 0)) for predict in (predict_sentences, predict_document)]
    monkeypatch.setattr(scoring, "WINDOW", 4)
    monkeypatch.setattr(scoring, "BATCH", 8)
    found = [list(score_sentences(model, sentences, 0, batch_size)), list(score_document(model, sentences, 0))]
    for scores, wanted in zip(found, expected, strict=True):
        assert len(scores[-1]) == 0
        for one, other in zip(scores, wanted, strict=False):
            np.testing.assert_allclose(one, other, rtol=1e-5)
    found = [list(predict_sentences(model, sentences, 0, batch_size)), list(predict_document(model, sentences, 0))]
    for predictions, wanted in zip(found, predicted, strict=True):
        for one, other in zip(predictions, wanted, strict=False):
            np.testing.assert_allclose(one.log_prob, other.log_prob, rtol=1e-5)
            np.testing.assert_allclose(one.entropy, other.entropy, rtol=1e-5)
            assert one.rank.tolist() == other.rank.tolist()


def test_no_window_is_longer_than_allowed(model, monkeypatch):
    lengths = []
    plain = type(model).log_prob

    def log_prob(self, inputs, targets, state):
        lengths.append(inputs.numel())
        return plain(self, inputs, targets, state)

    monkeypatch.setattr(type(model), "log_prob", log_prob)
    monkeypatch.setattr(scoring, "WINDOW", 10)
    (scores,) = score_sentences(model, [np.resize(SENTENCES[0], 95)], 0)
    assert len(scores) == 95
    assert max(lengths) == 10
