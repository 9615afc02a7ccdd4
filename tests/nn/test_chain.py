"""A chain of tags beside the sums over all sequences, and beside a hidden Markov model in NumPy."""

import itertools

import numpy as np
import pytest
import torch

from elman import nn as enn

T, B, K = 4, 3, 3
LENGTHS = [4, 1, 3]


def made(seed=0):
    torch.manual_seed(seed)
    chain = enn.LinearChain(K).double()
    for parameter in chain.parameters():
        torch.nn.init.normal_(parameter)
    return chain, torch.randn(T, B, K, dtype=torch.float64, requires_grad=True)


def all_scores(chain, scores, b, length):
    """From every sequence of tags to its score (Lafferty et al. 2001), written out."""
    first, last, moves, s = (
        one.detach().numpy() for one in (chain.first, chain.last, chain.transitions, scores[:length, b])
    )
    return {
        tags: first[tags[0]]
        + sum(s[t, tag] for t, tag in enumerate(tags))
        + sum(moves[one, other] for one, other in itertools.pairwise(tags))
        + last[tags[-1]]
        for tags in itertools.product(range(K), repeat=length)
    }


@pytest.mark.parametrize("seed", range(5))
def test_normaliser_score_and_best_are_those_of_all_sequences(seed):
    chain, scores = made(seed)
    lengths, padded = torch.tensor(LENGTHS), torch.full((T, B), 99)
    posteriors = torch.autograd.grad(chain(scores, lengths).sum(), scores)[0]
    best = chain.decode(scores, lengths)
    for b, length in enumerate(LENGTHS):
        every = all_scores(chain, scores, b, length)
        normaliser = np.log(sum(np.exp(score) for score in every.values()))
        assert chain(scores, lengths)[b].item() == pytest.approx(normaliser)
        tags = max(every, key=every.get)
        assert tuple(best[:, b].tolist()) == tags + (-1,) * (T - length)
        padded[:length, b] = torch.tensor(tags)
        for t, tag in np.ndindex(T, K):
            share = sum(np.exp(score - normaliser) for tags, score in every.items() if t < length and tags[t] == tag)
            assert posteriors[t, b, tag].item() == pytest.approx(share, abs=1e-12)
    expected = [max(all_scores(chain, scores, b, length).values()) for b, length in enumerate(LENGTHS)]
    np.testing.assert_allclose(chain.score(scores, padded, lengths).detach().numpy(), expected)
    np.testing.assert_allclose(
        chain.nll(scores, padded, lengths).detach().numpy(), (chain(scores, lengths).detach().numpy() - expected)
    )


def test_its_gradients_are_those_of_differences():
    chain, scores = made()
    tags, lengths = torch.randint(K, (T, B)), torch.tensor(LENGTHS)

    def loss(scores, first, last, transitions):
        values = {"first": first, "last": last, "transitions": transitions}
        return (
            sum(torch.func.functional_call(chain, values, (scores, lengths))) + chain.score(scores, tags, lengths).sum()
        )

    assert torch.autograd.gradcheck(loss, (scores, chain.first, chain.last, chain.transitions))


def test_it_is_a_hidden_markov_model():
    """Rabiner 1989, eqs 19 to 21: alpha by the forward algorithm, in probabilities."""
    draw = np.random.default_rng(1)
    start, moves, words = draw.dirichlet(np.ones(K)), draw.dirichlet(np.ones(K), K), draw.dirichlet(np.ones(5), K)
    text = draw.integers(5, size=T)
    alpha = start * words[:, text[0]]
    for word in text[1:]:
        alpha = (alpha @ moves) * words[:, word]
    chain = enn.LinearChain(K).double()
    with torch.no_grad():
        chain.first.copy_(torch.tensor(start).log())
        chain.transitions.copy_(torch.tensor(moves).log())
        scores = torch.tensor(words[:, text].T).log().unsqueeze(1)
    assert chain(scores).item() == pytest.approx(np.log(alpha.sum()))


def test_what_is_beyond_a_sequence_has_no_influence():
    chain, scores = made()
    lengths, tags = torch.tensor(LENGTHS), torch.randint(K, (T, B))
    other, others = scores.detach().clone(), tags.clone()
    for b, length in enumerate(LENGTHS):
        other[length:, b], others[length:, b] = float("nan"), 7
    torch.testing.assert_close(chain.nll(other, others, lengths), chain.nll(scores, tags, lengths))
    assert torch.equal(chain.decode(other, lengths), chain.decode(scores, lengths))


@pytest.mark.parametrize("lengths", [[4, 0, 3], [5, 1, 1], [4, 4]])
def test_lengths_are_within_the_scores(lengths):
    chain, scores = made()
    with pytest.raises(ValueError, match="lengths are from 1 to 4, one for each of 3 sequences"):
        chain(scores, torch.tensor(lengths))


@pytest.mark.parametrize("shape", [(T, B, 1), (T, B, K + 1), (T, K)])
def test_scores_of_other_shapes_are_refused(shape):
    chain, scores = made()
    tags = torch.zeros(T, B, dtype=torch.long)
    for call in (chain, chain.decode, lambda one: chain.nll(one, tags)):
        with pytest.raises(ValueError, match=rf"\[T, B, {K}\] is read"):
            call(torch.zeros(shape))
    with pytest.raises(ValueError, match=r"tags have shape \[4, 1\], and scores \[4, 3, "):
        chain.score(scores, tags[:, :1])
