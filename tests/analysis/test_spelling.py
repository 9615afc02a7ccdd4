"""Neighbours of strings, and perplexity by frequency, against counts by hand."""

import math

import numpy as np
import pytest
import torch

from elman import config
from elman.analysis.by_word import by_frequency
from elman.analysis.embedding import neighbourhoods
from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError
from elman.network.build import build_model
from support import networks

VOCABULARY = Vocabulary(("the", "cat", "cats", "<unk>"), (4, 3, 2, 1))


def model(encoder):
    torch.manual_seed(0)
    recipe = config.Model(encoder=encoder, core=config.Stack(sizes=(4,)))
    return networks.randomise(build_model(recipe, len(VOCABULARY), words=VOCABULARY.words))


def test_neighbours_of_any_string():
    spelled = model(config.Characters(size=3, widths=(1, 2), filters=(4, 8)))
    known, unknown = neighbourhoods(spelled, VOCABULARY, ["cat", "catss"], k=9)
    assert known.known
    assert not unknown.known
    assert [near.word for near in known.neighbours].count("cat") == 0
    assert len(unknown.neighbours) == 4
    assert unknown.neighbours[0].word == "cats"
    a, b = spelled.encoder.encode_words(["catss", "cats"], highway=False)
    (below,) = neighbourhoods(spelled, VOCABULARY, ["catss"], k=1, highway=False)
    assert below.neighbours[0].cosine == pytest.approx(torch.cosine_similarity(a, b, dim=0).item())


def test_looked_up_vectors_have_neighbours_in_the_vocabulary_alone():
    looked_up = model(config.Lookup(size=3))
    (found,) = neighbourhoods(looked_up, VOCABULARY, ["cat"], k=2)
    assert len(found.neighbours) == 2
    with pytest.raises(UserError, match="'dog' is not in the vocabulary of 4 words"):
        neighbourhoods(looked_up, VOCABULARY, ["dog"], k=2)
    with pytest.raises(UserError, match="--before-highway is for runs with"):
        neighbourhoods(looked_up, VOCABULARY, ["cat"], k=2, highway=False)


def test_bins_by_frequency():
    train, tokens = np.array([0, 0, 0, 1, 3, 3]), np.array([0, 1, 2, 3, 0])
    log_probs = np.log(np.array([np.nan, 0.5, 0.25, 0.125, 0.5]))
    zero, one, more, unk = by_frequency(log_probs, tokens, train, 4, 3, edges=(1, 3))
    assert [part.name for part in (zero, one, more, unk)] == ["0", "1-2", "3 or more", "<unk>"]
    assert (zero.tokens, one.tokens, more.tokens, unk.tokens) == (1, 1, 1, 1)
    assert zero.perplexity == pytest.approx(4)
    assert zero.following_perplexity == pytest.approx(8)
    assert one.following_nll == pytest.approx(math.log(4))
    assert unk.following_perplexity == pytest.approx(2)
    assert more.following == 1


def test_bins_of_frequency_begin_where_it_is_said():
    """By default at 1, 5, 25, 100 and 1000 (docs/grammar.md), each word in the bin of its count."""
    counts = (0, 1, 4, 5, 24, 25, 99, 100, 999, 1000, 2000)
    train = np.repeat(np.arange(len(counts)), counts)
    tokens = np.arange(len(counts))
    found = by_frequency(np.full(len(counts), -1.0), tokens, train, len(counts), None)
    names = ["0", "1-4", "5-24", "25-99", "100-999", "1000 or more"]
    assert [(part.name, part.tokens) for part in found] == list(zip(names, (1, 2, 2, 2, 2, 2), strict=True))
