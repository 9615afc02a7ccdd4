"""n-gram models over a network's vocabulary, mixtures of both, and their weights."""

import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError
from elman.evaluation.mixture import Mixture, best_weights
from elman.evaluation.ngram import alignment
from elman.evaluation.ngram.alignment import AlignedNGram, Mass
from elman.evaluation.ngram.model import train
from elman.evaluation.ngram.table import NOTHING
from elman.evaluation.perplexity import average_probabilities
from elman.evaluation.scoring import predict_document, predict_sentences, score_document, score_sentences
from elman.network.build import tiny_model

SENTENCES = ["a b c", "a b", "b b c a", "c", "a c c b a", "d a b", "", "d c"]


def ngram(order=3, stream=False, min_count=1):
    words = [word for line in SENTENCES for word in (*line.split(), "<eos>")]
    vocabulary = Vocabulary.from_counts(Counter(words), min_count=min_count)
    return train(vocabulary.encode(words), vocabulary, order, stream=stream)


def vocabulary_of(words):
    return Vocabulary(tuple(words), (1,) * len(words))


VOCABULARIES = {
    "the same words": ["<eos>", "a", "b", "c", "d", "<unk>"],
    "no <unk>": ["<eos>", "a", "b", "c", "d"],
    "fewer words": ["b", "<unk>", "<eos>", "a"],
    "fewer words, no <unk>": ["b", "<eos>", "a"],
    "more words": ["<unk>", "x", "a", "y", "b", "c", "<eos>", "d", "z"],
    "more words, no <unk>": ["x", "a", "y", "b", "c", "<eos>", "d"],
    "others": ["x", "a", "<unk>", "<eos>", "c"],
    "words written as marks": ["<eos>", "</s>", "a", "b", "<s>", "c", "<unk>"],
    "no <eos>": ["a", "b", "<unk>"],
    "neither": ["a", "c", "d"],
}


@pytest.mark.parametrize("words", VOCABULARIES.values(), ids=VOCABULARIES)
@pytest.mark.parametrize(("order", "stream"), [(1, False), (3, False), (3, True)])
def test_sums_to_one_over_the_vocabulary_of_a_network(words, order, stream):
    model, longest = AlignedNGram(ngram(order, stream), vocabulary_of(words)), 3 if len(words) < 7 else 2
    for history in itertools.chain(*(itertools.product(range(len(words)), repeat=n) for n in range(1, longest + 1))):
        found = model.log_probs(np.array([history]))[0, -1]
        assert np.exp(found).sum() == pytest.approx(1, abs=1e-9)
        each = [model.log_prob(np.array([word]), list(history))[0] for word in range(len(words))]
        np.testing.assert_allclose(each, found, atol=1e-9)


@pytest.mark.parametrize("part", [1, 2, 7])
@pytest.mark.parametrize("words", ["fewer words", "fewer words, no <unk>"])
def test_masses_are_the_same_in_parts_of_any_size(part, words, monkeypatch):
    text = np.random.default_rng(0).integers(len(VOCABULARIES[words]), size=60)
    whole = AlignedNGram(ngram(4), vocabulary_of(VOCABULARIES[words])).log_prob(text)
    monkeypatch.setattr(alignment, "PART", part)
    np.testing.assert_array_equal(AlignedNGram(ngram(4), vocabulary_of(VOCABULARIES[words])).log_prob(text), whole)


def test_a_model_that_knows_other_words_forgets_those_of_before():
    """x is read as the unknown word that it is, then its number belongs to b."""
    model = AlignedNGram(ngram(), vocabulary_of(["<eos>", "a", "<unk>"]))
    one, other = model.knowing(["x"]), model.knowing(["x"]).knowing(["b", "x"])
    tokens = np.array([1, 1])
    assert other.score(tokens, np.array([3, 1]))[1] == model.knowing(["b"]).score(tokens, np.array([3, 1]))[1]
    assert other.score(tokens, np.array([4, 1]))[1] == one.score(tokens, np.array([3, 1]))[1]
    assert one.score(tokens, np.array([3, 1]))[1] != other.score(tokens, np.array([3, 1]))[1]


def test_words_of_the_same_vocabulary_have_their_probabilities():
    inner = ngram()
    model = AlignedNGram(inner, vocabulary_of(VOCABULARIES["the same words"]))
    assert (model.missing, model.foreign) == (0, 0)
    words = ["a", "b", "<unk>", "c", "<eos>", "d", "a", "<eos>", "<eos>", "c"]
    wanted = inner.score(inner.encode(words))[0]
    np.testing.assert_allclose(model.log_prob(model.vocabulary.encode(words), [0]), wanted)


def test_missing_words_share_the_probability_of_unknown_ones():
    inner = ngram()
    model = AlignedNGram(inner, vocabulary_of(VOCABULARIES["more words"]))
    assert (model.missing, model.foreign) == (3, 0)
    unknown = inner.score(inner.encode(["a", "q"]))[0][1]
    found = model.log_prob(model.vocabulary.encode(["a", "x", "a", "z", "a", "<unk>"]), [6])
    np.testing.assert_allclose(
        found[[1, 3, 5]] + np.log(4), [unknown, *inner.score(inner.encode(["a", "q", "a", "q", "a", "q"]))[0][[3, 5]]]
    )


@pytest.mark.parametrize("stream", [False, True])
def test_words_written_as_marks_of_sentences_are_unknown_beside_eos(stream):
    """They neither share the probability of the end of a sentence nor begin a context of their own."""
    inner = ngram(stream=stream)
    model = AlignedNGram(inner, vocabulary_of(VOCABULARIES["words written as marks"]))
    assert (model.missing, model.foreign) == (2, 1)
    read, text = (["<s>", "a", "</s>", "b", "<eos>"], ["<unk>", "a", "<unk>", "b", "<eos>"])
    found = model.log_prob(model.vocabulary.encode(read), [0])
    wanted = inner.score(inner.encode(text), np.array([inner.end]))[0]
    np.testing.assert_allclose(found[[1, 3, 4]], wanted[[1, 3, 4]])
    without = AlignedNGram(inner, vocabulary_of(["a", "</s>", "b"]))
    assert without.missing == (1 if stream else 0), "where texts have no <eos> it is the end of a sentence"


def test_foreign_words_belong_to_unk():
    inner = ngram()
    model = AlignedNGram(inner, vocabulary_of(VOCABULARIES["fewer words"]))
    assert (model.missing, model.foreign) == (0, 2)
    after = ["a", "b"]
    mass = sum(np.exp(inner.score(inner.encode([*after, word]))[0][-1]) for word in ("c", "d", "q"))
    assert np.exp(model.log_prob(model.vocabulary.encode([*after, "<unk>"]), [2])[-1]) == pytest.approx(mass)


def test_what_has_no_place_is_left_out_and_the_rest_divided():
    inner = ngram()
    model = AlignedNGram(inner, vocabulary_of(VOCABULARIES["fewer words, no <unk>"]))
    after = ["b", "a"]
    found = np.exp([inner.score(inner.encode([*after, word]))[0][-1] for word in ("b", "<eos>", "a")])
    here = [np.exp(model.log_prob(np.array([0, 2, word]), [1])[-1]) for word in range(3)]
    np.testing.assert_allclose(here, found / found.sum())


@pytest.mark.parametrize("chosen", [["c"], ["a", "d", "</s>"], ["<unk>"]])
def test_the_mass_of_words_after_every_context(chosen):
    inner = ngram(4)
    table, flags = inner.table, np.isin(inner.words, chosen)
    mass = Mass(table, flags)
    for history in itertools.chain(*(itertools.product(range(len(inner.words)), repeat=n) for n in (1, 2, 3))):
        contexts = [number[-1:] for number in table.contexts(np.array(history))]
        wanted = np.exp(table.log_probs([int(number[0]) for number in contexts]))[flags].sum()
        assert mass.after(contexts, (1,))[0] == pytest.approx(wanted, abs=1e-12)


def test_a_model_of_other_tokens_is_refused():
    with pytest.raises(UserError, match=r"m\.arpa: none of its words"):
        AlignedNGram(ngram(), vocabulary_of(["<eos>", "<unk>", "q"]), "m.arpa")


WORDS = ["<eos>", "a", "b", "c", "d", "<unk>", "x"]


@pytest.fixture(scope="module")
def mixture():
    torch.manual_seed(0)
    network = tiny_model(num_words=len(WORDS)).eval()
    models = [AlignedNGram(ngram(order), vocabulary_of(WORDS)) for order in (3, 2)]
    return Mixture(network, models, [0.3, 0.2])


def texts(seed=0):
    draw = np.random.default_rng(seed)
    return [draw.integers(0, len(WORDS), length) for length in (1, 4, 0, 7, 2)]


def by_hand(mixture, ids, history=(0,)):
    """The probabilities of the network and of both n-gram models, averaged by their weights."""
    symbols = torch.tensor([*history, *ids])
    network = mixture.network[0]
    log_prob, _ = network.log_prob(symbols[:-1, None], symbols[1:, None], network.begin(1))
    parts = [log_prob[:, 0].detach().numpy()[len(history) - 1 :]]
    parts += [model.log_prob(np.array(ids), list(history)) for model in mixture.ngrams]
    return average_probabilities(parts, [0.5, 0.3, 0.2])


def test_sentences_of_a_mixture(mixture):
    for ids, found in zip(texts(), score_sentences(mixture, texts(), 0), strict=True):
        if len(ids):
            np.testing.assert_allclose(found, by_hand(mixture, ids), rtol=1e-4)


def test_a_document_of_a_mixture(mixture):
    found = np.concatenate(list(score_document(mixture, texts(), 0)))
    np.testing.assert_allclose(found, by_hand(mixture, np.concatenate(texts())), rtol=1e-4)


@pytest.mark.parametrize(
    ("score", "predict"), [(score_sentences, predict_sentences), (score_document, predict_document)]
)
def test_a_mixture_is_a_distribution(mixture, score, predict):
    for log_prob, predicted in zip(score(mixture, texts(), 0), predict(mixture, texts(), 0), strict=True):
        np.testing.assert_allclose(predicted.log_prob, log_prob, rtol=1e-4)
        assert (predicted.entropy > 0).all()
    inputs = torch.tensor([[0, 3], [1, 5], [2, 0], [6, 1]])
    log_probs, state = mixture.log_probs(inputs, mixture.begin(2))
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(4, 2))
    step, _ = mixture.step(torch.tensor([2, 2]), state)
    longer, _ = mixture.log_probs(torch.cat([inputs, torch.tensor([[2, 2]])]), mixture.begin(2))
    torch.testing.assert_close(step, longer[-1])


def test_the_state_of_a_mixture_carries_the_last_words(mixture):
    _, state = mixture.trace(torch.tensor([[0], [1], [2]]), mixture.begin(1))
    assert state[1].tolist() == [[1, 2]]
    assert mixture.begin(2)[1].tolist() == [[NOTHING, NOTHING]] * 2


def test_unknown_words_are_read_by_their_spelling():
    model = AlignedNGram(ngram(), vocabulary_of(["<eos>", "a", "<unk>"])).knowing(["b", "q"])
    read = np.array([[0, 1, 3], [0, 1, 4], [0, 1, 2]])
    words = np.array([[0, 1, 2, 1]] * 3)
    known, strange, unknown = model.score(words, np.concatenate([read, [[NOTHING]] * 3], 1))[:, -1]
    inner = ngram()
    assert known == pytest.approx(inner.score(inner.encode(["a", "b", "a"]))[0][-1])
    assert strange == unknown == pytest.approx(inner.score(inner.encode(["a", "q", "a"]))[0][-1])


def test_weights_by_hand():
    # The likelihood w .8 + (1 - w) .2 of half the tokens, and w .2 + (1 - w) .8 of the others, is symmetric.
    one, other = np.log([0.8, 0.2]), np.log([0.2, 0.8])
    assert best_weights([one, other]) == pytest.approx([0.5, 0.5], abs=1e-4)
    assert best_weights([one, one - 1]) == pytest.approx([1, 0], abs=1e-4)
    # Two of three: (w .8 + (1 - w) .2)^2 (w .2 + (1 - w) .8) is largest where 2 * .6 / (.2 + .6 w) = .6 / (.8 - .6 w).
    assert best_weights([np.log([0.8, 0.8, 0.2]), np.log([0.2, 0.2, 0.8])])[0] == pytest.approx(7 / 9, abs=1e-4)


@given(st.integers(2, 4), st.integers(0, 1000))
def test_no_other_weights_are_better(models, seed):
    draw = np.random.default_rng(seed)
    log_probs = [np.log(draw.dirichlet(np.ones(5), 30)[:, 0] + 1e-6) for _ in range(models)]
    log_probs[0][3] = np.nan
    weights = best_weights(log_probs)
    assert sum(weights) == pytest.approx(1)
    best = np.nanmean(average_probabilities(log_probs, weights))
    for other in draw.dirichlet(np.ones(models), 20):
        assert np.nanmean(average_probabilities(log_probs, other.tolist())) < best + 1e-5
