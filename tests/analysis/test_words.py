"""States averaged by word against a loop, clusterings by hand, letters by place."""

import math

import numpy as np
import pytest
import torch

from elman.analysis.letters import places_in_words
from elman.analysis.words import cluster, states_along, word_states
from elman.data.windows import EvaluationWindows
from elman.errors import UserError
from elman.network.build import tiny_model

TOKENS = np.array([3, 1, 3, 2, 1, 3, 0, 2, 2, 5, 1], dtype=np.int64)


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("length", [3, 70])
def test_states_are_averaged_over_all_places_of_a_word(level, length):
    torch.manual_seed(0)
    model = tiny_model(num_words=7).eval()
    windows = EvaluationWindows(TOKENS, 6, length=length)
    found = word_states(model, windows, level, 7)
    seen, state, each = {}, model.begin(1), []
    with torch.inference_mode():
        for symbol in [6, *TOKENS[:-1].tolist()]:  # the last token is a target only
            trace, state = model.trace(torch.tensor([[symbol]]), state)
            each.append(trace.raw[level][0, 0].double().numpy())
            seen.setdefault(symbol, []).append(each[-1])
    for symbol in range(7):
        assert found.counts[symbol] == len(seen.get(symbol, []))
        expected = np.mean(seen[symbol], axis=0) if symbol in seen else np.zeros(found.means.shape[1])
        np.testing.assert_allclose(found.means[symbol], expected, atol=1e-6)
    np.testing.assert_allclose(np.concatenate(list(states_along(model, windows, level))), each, atol=1e-6)


def test_columns_are_averaged_together():
    torch.manual_seed(0)
    model = tiny_model(num_words=7).eval()
    found = word_states(model, EvaluationWindows(TOKENS, 6, streams=3), 1, 7)
    assert found.counts.sum() == len(TOKENS)
    assert found.counts[6] >= 1


def test_near_words_are_joined_first_and_groups_are_cut_from_the_tree():
    vectors = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 1.0], [10.0, 2.0], [0.0, 5.0]])
    found = cluster(list("abcde"), vectors, [5, 4, 3, 2, 1], groups=2)
    assert {frozenset(group) for group in found.members()} == {frozenset("ace"), frozenset("bd")}
    assert dict(zip(found.words, found.counts, strict=True)) == dict(zip("abcde", [5, 4, 3, 2, 1], strict=True))
    distances = found.merges[:, 2]
    between = np.mean([math.dist(vectors[one], vectors[other]) for one in (0, 2, 4) for other in (1, 3)])
    np.testing.assert_allclose(distances, [1.0, 2.0, 4.5, between])
    assert abs(found.words.index("a") - found.words.index("c")) == 1
    assert len(cluster(list("abcde"), vectors, [1] * 5, groups=9).members()) == 5
    single = cluster(list("abcde"), vectors, [1] * 5, method="single")
    np.testing.assert_allclose(single.merges[:, 2], [1.0, 2.0, 4.0, 10.0])


def test_directions_and_what_cannot_be_clustered():
    vectors = np.array([[1.0, 0.0], [5.0, 0.1], [0.0, 3.0]])
    members = cluster(list("abc"), vectors, [1] * 3, metric="cosine", groups=2).members()
    assert {frozenset(group) for group in members} == {frozenset("ab"), frozenset("c")}
    with pytest.raises(UserError, match="--method ward"):
        cluster(list("abc"), vectors, [1] * 3, method="ward", metric="cosine")
    with pytest.raises(UserError, match="is zero"):
        cluster(list("abc"), vectors * [[1], [1], [0]], [1] * 3, metric="cosine")


def test_places_begin_again_after_spaces_marks_and_lines():
    symbols = [*"it's a", "<eos>", *"ab"]
    assert places_in_words(symbols).tolist() == [1, 2, 0, 1, 0, 1, 0, 1, 2]
